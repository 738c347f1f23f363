"""Texts longer than a model can read: overlapping windows, merged word by word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from pellucid._errors import InputError, explain_error
from pellucid._results import Explanation
from pellucid._types import Segment, Text
from pellucid._words import group_by_word

OVERLAP = 0.25


def window_spans(text: Text, room: int, overlap: float = OVERLAP) -> list[tuple[int, int]]:
    """Character spans of windows of whole words, of at most `room` tokens each."""
    spans = [s.span for s in text.segments if s.role == "content" and s.span is not None]
    words = group_by_word(text.parts[0], spans)
    windows: list[tuple[int, int]] = []
    first = 0
    while first < len(words):
        last, tokens = first, 0
        while last < len(words) and (last == first or tokens + len(words[last]) <= room):
            tokens += len(words[last])
            last += 1
        windows.append((spans[words[first][0]][0], spans[words[last - 1][-1]][1]))
        if last == len(words):
            break
        shared = 0
        first, previous = last, first
        while first - 1 > previous and shared + len(words[first - 1]) <= overlap * room:
            first -= 1
            shared += len(words[first])
    return windows


def merged(
    text: Text, spans: Sequence[tuple[int, int]], parts: Sequence[Explanation]
) -> Explanation:
    """One explanation of the whole text: each word's mean over the windows that hold it."""
    scores: dict[tuple[int, int], list[float]] = defaultdict(list)
    for (offset, _), part in zip(spans, parts, strict=True):
        for word in part.words():
            scores[word.span[0] + offset, word.span[1] + offset].append(word.score)
    ordered = sorted(scores)
    source = text.parts[0]
    segments = tuple(Segment(source[a:b], span=(a, b)) for a, b in ordered)
    labels = {label for part in parts for label in part.prediction}
    mean = 1 / len(parts)
    note = f"{len(parts)} overlapping windows of the text, merged by words"
    return replace(
        parts[0],
        scores=torch.tensor([sum(scores[s]) / len(scores[s]) for s in ordered]),
        item=Text(text.parts, segments),
        value=sum(part.value for part in parts) * mean,
        prediction={
            label: sum(part.prediction.get(label, 0.0) for part in parts) * mean for label in labels
        },
        logits=torch.stack([part.logits for part in parts]).mean(dim=0),
        notes=(*parts[0].notes, note),
    )


def explain_in_windows(
    text: Text, longest: int, explain_texts: Callable[[list[str]], list[Explanation]]
) -> Explanation:
    """Explain every window of at most `longest` tokens by itself, then merge."""
    if len(text.parts) > 1:
        raise InputError(
            explain_error(
                "a pair of texts cannot be read in windows",
                got=f"a pair of {len(text.segments)} tokens",
                expected="one text, or a pair that fits",
                instead="long='truncate'",
            )
        )
    added = sum(segment.role != "content" for segment in text.segments)
    spans = window_spans(text, longest - added)
    source = text.parts[0]
    return merged(text, spans, explain_texts([source[a:b] for a, b in spans]))

"""Texts longer than a model can read: overlapping windows, merged word by word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from pellucid._errors import InputError, explain_error
from pellucid._results import Explanation
from pellucid._target import Target
from pellucid._types import Segment, Text
from pellucid._views import plain
from pellucid._words import group_by_word

OVERLAP = 0.25  # of a window that the next one repeats

ExplainTexts = Callable[[list[str], Target], list[Explanation]]


def explain_in_windows(
    text: Text,
    longest: int,
    target: Target,
    explain_texts: ExplainTexts,
    length: Callable[[str], int],
) -> Explanation:
    """Explain every window of at most `longest` tokens by itself, all for one class, then merge.

    Where no class is asked for, it is the one with the largest mean logit over the windows.
    `length` counts the tokens that a piece of the text has when it is read alone.
    """
    if len(text.parts) > 1 or target.text is not None:
        raise InputError(
            explain_error(
                "only a single text is read in windows",
                got=f"a pair, or a text with a continuation, of {len(text.segments)} tokens",
                expected="one text, or inputs that fit",
                instead="long='truncate'",
            )
        )
    source = text.parts[0]
    added = sum(segment.role != "content" for segment in text.segments)
    spans = window_spans(text, longest - added, lambda a, b: length(source[a:b]) <= longest)
    windows = [source[start:end] for start, end in spans]
    parts = explain_texts(windows, target)
    if len({part.index for part in parts}) > 1:
        mean = torch.stack([part.logits for part in parts]).mean(dim=0)
        parts = explain_texts(windows, replace(target, label=int(mean.argmax())))
    return merged(text, spans, parts)


def window_spans(
    text: Text, room: int, fits: Callable[[int, int], bool] = lambda start, end: True
) -> list[tuple[int, int]]:
    """Character spans of windows of whole words, of at most `room` tokens each.

    A piece may have more tokens alone than it had in the whole, so `fits` has the last word.
    """
    spans = [s.span for s in text.segments if s.role == "content" and s.span is not None]
    words = group_by_word(text.parts[0], spans)
    sizes = [len(tokens) for _, tokens in words]
    windows: list[tuple[int, int]] = []
    first = 0
    while True:
        last = _fill(sizes, first, room)
        start = words[first][0][0]
        while last > first + 1 and not fits(start, words[last - 1][0][1]):
            last -= 1
        windows.append((start, words[last - 1][0][1]))
        if last == len(words):
            return windows
        first = max(first + 1, _step_back(sizes, last, OVERLAP * room))


def merged(
    text: Text, spans: Sequence[tuple[int, int]], parts: Sequence[Explanation]
) -> Explanation:
    """One explanation of the whole text: each word's mean over the windows that hold it."""
    scores: dict[tuple[int, int], list[float]] = defaultdict(list)
    for (offset, _), part in zip(spans, parts, strict=True):
        for word in part.words():
            scores[word.span[0] + offset, word.span[1] + offset].append(word.score)
    ordered = sorted(scores)
    source, first, count = text.parts[0], plain(parts[0]), len(parts)
    labels = {label for part in parts for label in part.prediction}
    means = {k: sum(part.prediction.get(k, 0.0) for part in parts) / count for k in labels}
    notes = dict.fromkeys(note for part in parts for note in part.notes)
    return replace(
        first,
        scores=torch.tensor([sum(scores[s]) / len(scores[s]) for s in ordered]),
        item=Text(text.parts, tuple(Segment(source[a:b], span=(a, b)) for a, b in ordered)),
        value=sum(part.value for part in parts) / count,
        prediction=dict(sorted(means.items(), key=lambda item: (-item[1], item[0]))),
        logits=torch.stack([part.logits for part in parts]).mean(dim=0),
        notes=(*notes, f"{count} overlapping windows of the text, merged by words"),
        provenance=replace(
            first.provenance,
            seconds=sum(part.provenance.seconds for part in parts),
            forwards=sum(part.provenance.forwards for part in parts),
            backwards=sum(part.provenance.backwards for part in parts),
        ),
    )


def _fill(sizes: Sequence[int], first: int, room: int) -> int:
    """Where a window that begins at a word ends: as many words as fit, at least one."""
    last, tokens = first + 1, sizes[first]
    while last < len(sizes) and tokens + sizes[last] <= room:
        tokens += sizes[last]
        last += 1
    return last


def _step_back(sizes: Sequence[int], last: int, shared: float) -> int:
    """Where the next window begins: a few words before this one ends."""
    first = last
    while first > 0 and sizes[first - 1] <= shared:
        first -= 1
        shared -= sizes[first]
    return first

"""The pieces of a text that can be left out: where they stand, and the text without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, get_args

from pellucid._errors import InputError, explain_error
from pellucid._types import Segment, Text
from pellucid._words import character_spans, word_spans
from pellucid.adapters.text import TextReader

Named = Literal["words", "characters", "sentences"]
Split = Named | Callable[[str], Sequence[str]]
NAMED: tuple[str, ...] = get_args(Named)
Spans = list[tuple[int, int]]

# A sentence ends at a line break, at the full stop of a script without spaces, or at a mark and
# the quotes and brackets that close behind it, where white space or nothing follows.
_SENTENCE_END = re.compile(r"""\n|[。！？]["'”’」』）)\]]*|[.!?…]+["'”’»)\]]*(?=\s|$)""")


def is_tokenizer(split: Any) -> bool:
    """Whether this is a tokenizer of transformers, which can be called like a function too."""
    return hasattr(split, "convert_ids_to_tokens")


def spans_of(text: str, split: Any) -> Spans:
    """The [start, end) characters of the pieces of a text, in their order."""
    if split == "words":
        return word_spans(text)
    if split == "characters":
        return character_spans(text)
    if split == "sentences":
        return _sentence_spans(text)
    if is_tokenizer(split):
        return _token_spans(text, split)
    return _found(text, split(text))


def _sentence_spans(text: str) -> Spans:
    """Sentences without the white space around them; abbreviations are not known."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    spans = []
    for start, end in zip([0, *ends], [*ends, len(text)], strict=True):
        piece = text[start:end].strip()
        if piece:
            begin = text.index(piece, start)
            spans.append((begin, begin + len(piece)))
    return spans


def _token_spans(text: str, tokenizer: Any) -> Spans:
    """The tokens of a tokenizer; those that share a character are one piece."""
    reader = TextReader(tokenizer, frozenset(), 10**9, pad_id=0)
    spans: Spans = []
    for segment in reader.read(text).segments:
        if segment.role != "content" or segment.span is None:
            continue
        start, end = segment.span
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        elif text[start:end].strip():
            spans.append((start, end))
    return spans


def _found(text: str, pieces: Any) -> Spans:
    """Where the pieces that a user's function returned stand in the text."""
    spans: Spans = []
    position = 0
    listed: list[Any] = list(pieces) if isinstance(pieces, Iterable) else [pieces]
    for piece in listed:
        start = text.find(piece, position) if isinstance(piece, str) and piece else -1
        if start < 0:
            raise InputError(
                explain_error(
                    "split returned a piece that is not in the text",
                    got=repr(piece),
                    expected="substrings of the text, in their order",
                    instead="split=str.split",
                )
            )
        position = start + len(piece)
        spans.append((start, position))
    return spans


def kept(text: Text, keep: Sequence[bool]) -> Text:
    """The text without the segments that are not kept, and with single spaces between the rest."""
    parts: list[str] = []
    segments: list[Segment] = []
    for number, part in enumerate(text.parts):
        written, end, space = "", 0, False
        for segment, stays in zip(text.segments, keep, strict=True):
            if segment.part != number or segment.span is None:
                continue
            gap, end = part[end : segment.span[0]], segment.span[1]
            space = space or any(character.isspace() for character in gap)
            if not stays:
                continue
            written += "".join(gap.split()) + (" " if space and written else "")
            segments.append(_moved(segment, segment.text, len(written)))
            written, space = written + segment.text, False
        parts.append(written + "".join(part[end:].split()))
    return Text(tuple(parts), tuple(segments), text.notes)


def replaced(text: Text, keep: Sequence[bool], mask: str) -> Text:
    """The text with the mask in the place of every segment that is not kept."""
    parts: list[str] = []
    segments: list[Segment] = []
    for number, part in enumerate(text.parts):
        written, end = "", 0
        for segment, stays in zip(text.segments, keep, strict=True):
            if segment.part != number or segment.span is None:
                continue
            written += part[end : segment.span[0]]
            end = segment.span[1]
            segments.append(_moved(segment, segment.text if stays else mask, len(written)))
            written += segments[-1].text
        parts.append(written + part[end:])
    return Text(tuple(parts), tuple(segments), text.notes)


def _moved(segment: Segment, text: str, start: int) -> Segment:
    return replace(segment, text=text, span=(start, start + len(text)))

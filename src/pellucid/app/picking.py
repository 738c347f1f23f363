"""Words and patches that are chosen by clicking on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from pellucid._types import Picture, Text
from pellucid._words import group_by_word
from pellucid.viz.colour import FOR

Chosen = frozenset[int]  # numbers of segments

_SIDE = 448  # pixels that the longer side of a picture to click on has at least
_LINE = 3


@dataclass(frozen=True)
class Piece:
    """A word with the numbers of its tokens, or what stands between words, which has none."""

    text: str
    tokens: tuple[int, ...] = ()


def pieces(item: Text) -> list[Piece]:
    """A whole text in order, cut at its words."""
    text = item.parts[0]
    own = [
        (number, segment.span)
        for number, segment in enumerate(item.segments)
        if segment.role == "content" and segment.part == 0 and segment.span is not None
    ]
    found, position = [], 0
    for (start, end), tokens in group_by_word(text, [span for _, span in own]):
        if position < start:
            found.append(Piece(text[position:start]))
        found.append(Piece(text[start:end], tuple(own[i][0] for i in tokens)))
        position = end
    if position < len(text):
        found.append(Piece(text[position:]))
    return found


def toggled(chosen: Chosen, tokens: Sequence[int]) -> Chosen:
    """These tokens chosen as well, or no longer where they all were."""
    given = frozenset(tokens)
    return chosen - given if given <= chosen else chosen | given


def enlargement(picture: Picture) -> int:
    """How many times larger a picture is drawn to be clicked on."""
    return max(1, -(-_SIDE // max(picture.view.shape[:2])))


def patch_at(picture: Picture, x: float, y: float) -> tuple[int, ...]:
    """The patch at this place of the enlarged picture, if there is one."""
    times = enlargement(picture)
    across, down = x / times, y / times
    return tuple(
        number
        for number, segment in enumerate(picture.segments)
        if segment.box is not None
        and segment.box[0] <= down < segment.box[2]
        and segment.box[1] <= across < segment.box[3]
    )


def drawn(picture: Picture, chosen: Chosen) -> Image.Image:
    """The picture, enlarged, with its grid of patches and the chosen ones framed."""
    times = enlargement(picture)
    height, width = picture.view.shape[:2]
    view = picture.view[..., 0] if picture.view.shape[2] == 1 else picture.view
    found = Image.fromarray(view).convert("RGB")
    found = found.resize((width * times, height * times), Image.Resampling.NEAREST)
    lines = ImageDraw.Draw(found, "RGBA")
    boxes = [(i, s.box) for i, s in enumerate(picture.segments) if s.box is not None]
    for number, (top, left, bottom, right) in sorted(boxes, key=lambda one: one[0] in chosen):
        corners = (left * times, top * times, right * times - 1, bottom * times - 1)
        if number in chosen:
            lines.rectangle(corners, fill=(*FOR, 90), outline=(*FOR, 255), width=_LINE)
        else:
            lines.rectangle(corners, outline=(128, 128, 128, 110))
    return found

"""An explanation drawn with matplotlib, for papers and for figures of one's own."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._types import Picture, Text
from pellucid.viz.colour import Array, Scale
from pellucid.viz.markup import visible
from pellucid.viz.shown import Run, runs, scale_of
from pellucid.viz.wording import directions, short, subject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 0.75  # opacity of the strongest heat, so that what lies under it stays readable
_SIZES = (12, 11, 10, 9, 8, 7, 6, 5)  # points, tried until the text fits
_LEADING = 1.9
_INCHES = 8.0  # the width of a new figure of a text

Placed = tuple[float, int, Run]  # the left edge in units of the type's size, and the line


def plot(explanation: Explanation, ax: Axes | None = None) -> Axes:
    """Draw on the axes given, or on those of a new figure that pyplot does not know.

    `ex.plot().figure.savefig("heat.pdf")` keeps it; nothing is shown by itself.
    """
    axes = _new_axes(explanation) if ax is None else ax
    scale = scale_of(explanation)
    axes.set_axis_off()
    title = visible(f"{explanation.method}\n{short(subject(explanation))}")
    axes.set_title(title, fontsize=10, parse_math=False)
    _add_colour_bar(axes, explanation, scale)
    if isinstance(explanation.item, Picture):
        _draw_image(axes, explanation, explanation.item, scale)
    else:
        _draw_text(axes, explanation, scale)
    return axes


def new_figure(size: tuple[float, float]) -> Any:
    """A figure of this size in inches that pyplot does not know."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ArgumentError(
            explain_error(
                "plot() needs matplotlib",
                got="no installed matplotlib",
                expected="the extra that draws",
                instead='pip install "pellucid[plot]", or .to_html("page.html") without it',
            )
        ) from None
    return Figure(figsize=size, layout="constrained")


def _new_axes(explanation: Explanation) -> Any:
    if explanation.kind == "image":
        return new_figure((5.0, 5.0)).subplots()
    figure = new_figure((_INCHES, 1.6))
    text = _height(_placed(_measured(explanation), 0.95 * _INCHES * 72 / _SIZES[0]), _SIZES[0])
    figure.set_figheight(1.6 + 1.05 * text / 72)
    return figure.subplots()


# ---- image ---------------------------------------------------------------------------------------


def _draw_image(axes: Any, explanation: Explanation, picture: Picture, scale: Scale) -> None:
    """The picture in grey under the heat, which takes the place of its patches."""
    height, width = picture.view.shape[:2]
    grey = 0.2 + 0.6 * picture.view.mean(axis=2) / 255  # faint, so that the heat stands out
    axes.imshow(grey, cmap="gray", vmin=0, vmax=1, extent=(0, width, height, 0))
    if explanation.scores.dim() == 2:
        grid, place = explanation.scores, (0, width, height, 0)
    else:
        boxes = [segment.box for segment in picture.segments if segment.box is not None]
        top, left, bottom, right = zip(*boxes, strict=True)
        grid, place = explanation.patches(), (min(left), max(right), max(bottom), min(top))
    colours = scale.rgba(grid.double().numpy()) / 255
    axes.imshow(_lighter(colours), extent=place, interpolation="nearest")
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)


def _add_colour_bar(axes: Any, explanation: Explanation, scale: Scale) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import ListedColormap, Normalize

    limit = scale.limit or 1.0
    norm = Normalize(-limit if scale.signed else 0.0, limit)
    colours = ListedColormap(_lighter(Scale(limit, limit, scale.signed).ramp()))
    horizontal = explanation.kind == "text"
    bar = axes.figure.colorbar(
        ScalarMappable(norm, colours),
        ax=axes,
        orientation="horizontal" if horizontal else "vertical",
        shrink=0.6 if horizontal else 0.8,
        fraction=min(0.15, 0.8 * axes.figure.dpi / axes.bbox.height) if horizontal else 0.15,
    )
    low, high = directions(explanation)
    ends = visible(f"{short(low, 40)}  —  {short(high, 40)}")
    bar.set_label(ends, fontsize=9, parse_math=False)
    bar.ax.tick_params(labelsize=8)


def _lighter(colours: Array) -> Array:
    colours[..., 3] *= _MOST
    return colours


# ---- text ----------------------------------------------------------------------------------------


def _draw_text(axes: Any, explanation: Explanation, scale: Scale) -> None:
    """The words on the colours of their scores, in the largest type that fits."""
    axes.figure.canvas.figure.draw_without_rendering()  # places the axes, whose size is needed now
    box = axes.get_window_extent()
    width, height = (72 / axes.figure.dpi * side for side in (box.width, box.height))
    pieces = _measured(explanation)
    for size in _SIZES:
        placed = _placed(pieces, width / size)
        if _height(placed, size) <= height:
            break
    fitting = [piece for piece in placed if _height([piece], size) <= height]
    if fitting and len(fitting) < len(placed):
        fitting[-1] = (*fitting[-1][:2], Run("…"))
    for left, line, run in fitting:
        opacity = abs(float(scale.strength(run.score))) if run.words else 0.0
        colour = tuple(scale.rgba([run.score])[0, :3] / 255)
        axes.annotate(
            visible(run.text),
            xy=(0, 1),
            xycoords="axes fraction",
            xytext=(left * size, -(line + 1) * size * _LEADING),
            textcoords="offset points",
            fontsize=size,
            parse_math=False,
            bbox={"facecolor": (*colour, opacity * _MOST), "edgecolor": "none", "pad": 1.5},
        )


def _pieces(explanation: Explanation) -> Iterator[Run]:
    """The words, what lies between them cut where lines may break, and the ends of lines."""
    assert isinstance(explanation.item, Text)
    for part, text in enumerate(explanation.item.parts):
        for run in runs(text, [word for word in explanation.words() if word.part == part]):
            if run.words:
                yield run
            else:
                yield from (Run(piece) for piece in re.findall(r"\n|[^\S\n]+|\S+", run.text))
        yield Run("\n")


def _placed(pieces: Sequence[tuple[Run, float]], width: float) -> list[Placed]:
    """Every visible piece in its place, on lines of the given width."""
    placed: list[Placed] = []
    line, left = 0, 0.0
    for run, advance in pieces:
        if run.text == "\n" or (left and left + advance > width):
            line, left = line + 1, 0.0
        if run.text.strip():
            placed.append((left, line, run))
        if run.text.strip() or left:
            left += advance
    return placed


def _height(placed: Sequence[Placed], size: float) -> float:
    """How far down these pieces reach, in points."""
    return size * _LEADING * (1 + max((line for _, line, _ in placed), default=0))


def _measured(explanation: Explanation) -> list[tuple[Run, float]]:
    """The pieces of the text with their widths."""
    return [(run, _width(run.text)) for run in _pieces(explanation)]


def _width(text: str) -> float:
    """How wide the text is, in units of the type's size."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    with warnings.catch_warnings():  # of characters that the font lacks: drawing says it again
        warnings.simplefilter("ignore")
        width, _, _ = text_to_path.get_text_width_height_descent(
            visible(text).replace("\n", " "), FontProperties(size=100), False
        )
    return float(width) / 100

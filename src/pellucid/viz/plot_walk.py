"""A curve of a walk drawn with matplotlib, for papers and for figures of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pellucid._errors import ArgumentError, unknown_name
from pellucid._trajectory import SERIES, Trajectory
from pellucid.viz.course import title
from pellucid.viz.curves import probability_curves, series_curve
from pellucid.viz.markup import visible
from pellucid.viz.plot import new_figure
from pellucid.viz.wording import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PROBABILITIES = "probabilities"
_LOG = frozenset({"drift", "divergence", "projected"})
_STYLES = (("#1f5fa8", "-"), ("#b3500b", "--"), ("#00755a", ":"), ("#a03186", "-."))


def plot_walk(trajectory: Trajectory, ax: Axes | None = None, series: str = _PROBABILITIES) -> Axes:
    """Draw the probabilities of the likeliest classes, or one series, over the iterations.

    `tr.plot(series="drift").figure.savefig("drift.pdf")` keeps it; nothing is shown by itself.
    """
    names = [_PROBABILITIES, *trajectory.series]
    if series not in names:
        raise ArgumentError(unknown_name("series", series, names, write="series={!r}"))
    axes: Any = new_figure((6.0, 3.6)).subplots() if ax is None else ax
    several = series == _PROBABILITIES
    curves = probability_curves(trajectory) if several else [series_curve(trajectory, series)]
    for curve, (colour, line) in zip(curves, _STYLES, strict=False):
        axes.plot(curve.x, curve.y, color=colour, linestyle=line)
    if several:
        axes.set_ylim(0, 1)
        names = [visible(short(curve.label, 20)) for curve in curves]
        for text in axes.legend(names, frameon=False, fontsize=9).get_texts():
            text.set_parse_math(False)
    elif series in _LOG and bool((trajectory.series[series] > 0).any()):
        axes.set_yscale("log")
    described = "class probabilities" if several else SERIES[series]
    heading = visible(f"{short(title(trajectory))}\n{described}")
    axes.set_title(heading, fontsize=10, parse_math=False)
    axes.set_xlabel("iteration")
    axes.set_ylabel("probability" if several else series)
    axes.spines[["top", "right"]].set_visible(False)
    return axes  # type: ignore[no-any-return]

"""Trajectories: where a walk through the input space of a model went, and what the model said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Provenance
from pellucid._types import Picture, Segment, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pellucid._decoded import Decoded, Prompt

SERIES = {
    "drift": "largest change of any probability since the start",
    "displacement": "distance from the start",
    "length": "length of the path",
    "pseudolength": "length of the path in the pullback metric",
    "output_length": "length of the path of predictions",
    "energy": "sum of squared speeds in the pullback metric",
    "step": "length of the step",
    "sweeps": "corrections that the step took",
    "projected": "change of any probability by the projection on the feasible region",
    "divergence": "Kullback-Leibler divergence of the prediction from the first one",
    "output_drift": "distance of the measured prediction from the first one",
    "variation": "total variation between the prediction and the first one",
    "arc": "length of the path of predictions in the Fisher metric",
    "turn": "angle between the step and the one before it, in radians",
    "largest": "largest eigenvalue of the metric that the step was taken by",
    "smallest": "smallest eigenvalue that counted as nonzero",
    "rank": "how many eigenvalues counted as nonzero",
    "clamped": "share of the moving numbers that the projection changed",
    "unprojected": "drift before the projection on the feasible region",
    "growth": "growth of the predicted class's output since the start",
}
SOMETIMES = (
    "largest",
    "smallest",
    "rank",
    "clamped",
    "unprojected",
    "growth",
)  # where a walk knows them


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """One walk from one input. Per-step series have one number a step, the start included (k+1).

    Points are saved for some steps only; `iterations` says which.
    """

    item: Text | Picture
    goal: str  # "stay", "leave", or the name of a class
    space: str
    settings: Mapping[str, Any]  # everything that decided the walk
    tokens: tuple[int, ...]  # the segments that were moved
    iterations: Tensor  # s: the steps whose points are kept
    points: Tensor  # s m d: the states of the moved tokens
    labels: tuple[str, ...]  # the classes (or likeliest tokens) whose probabilities are kept
    classes: tuple[int, ...]  # their numbers
    probabilities: Tensor  # s c, float64
    predicted: tuple[str, ...]  # s: the likeliest class at every saved point
    series: Mapping[str, Tensor]  # k + 1 each: SERIES
    outcome: str  # how it ended, as a sentence
    completed: bool  # whether it took all its steps or arrived
    provenance: Provenance
    notes: tuple[str, ...] = ()
    model: Any = None  # not stored; decode() needs it

    def __repr__(self) -> str:
        line = (
            f"<walk with goal {self.goal!r} on {self.provenance.model}: {self.steps} steps, "
            f"{self.predicted[0]} to {self.predicted[-1]}, drift {float(self.drift[-1]):.4g}, "
            f"distance {float(self.displacement[-1]):.4g}>"
        )
        return "".join(one if one.isprintable() else "\ufffd" for one in line)  # of hostile files

    @property
    def kind(self) -> Literal["text", "image"]:
        """Whether the walk began at a text or at an image."""
        return "text" if isinstance(self.item, Text) else "image"

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All tokens or patches of the input."""
        return self.item.segments

    @property
    def steps(self) -> int:
        """How many steps were taken."""
        return len(self.drift) - 1

    @property
    def drift(self) -> Tensor:
        """The largest change of any probability since the start (k+1)."""
        return self.series["drift"]

    @property
    def displacement(self) -> Tensor:
        """The distance from the start (k+1)."""
        return self.series["displacement"]

    @property
    def length(self) -> Tensor:
        """The length of the path (k+1)."""
        return self.series["length"]

    @property
    def pseudolength(self) -> Tensor:
        """The length of the path in the pullback metric (k+1); zero inside a class.

        By the trapezoid rule where the metric is known at both ends of every step. A corrected walk
        keeps its Jacobian for many steps, so there the length of the predictions' polygon stands
        for it, which is the same in the limit (Proposition 1).
        """
        return self.series["pseudolength"]

    @property
    def kept_class(self) -> bool:
        """Whether every saved point has the class of the start."""
        return len(set(self.predicted)) == 1

    # ---- numbers that follow from the points -------------------------------------------------

    @property
    def token_displacement(self) -> Tensor:
        """How far every moved token is from its start, at the saved points (s m)."""
        from pellucid.explorer.monitors import token_displacement

        return token_displacement(self.points)

    @property
    def prediction_changes(self) -> Tensor:
        """Whether the likeliest class is another than at the saved point before (s-1, bool)."""
        from pellucid.explorer.monitors import prediction_changes

        return prediction_changes(self.predicted)

    @property
    def ranking_changes(self) -> Tensor:
        """How many pairs of classes changed their order since the saved point before (s-1).

        The Kendall distance of the two rankings; ties do not count. Of very many classes only
        those whose probabilities are kept are ranked.
        """
        from pellucid.explorer.monitors import ranking_changes

        return ranking_changes(self.probabilities)

    @property
    def condition(self) -> Tensor:
        """The metric's largest eigenvalue over its smallest nonzero one (k+1); NaN if unknown.

        A corrected walk knows its metric where it renewed its Jacobian, and keeps that until the
        next time.
        """
        from pellucid.explorer.monitors import condition

        return condition(self.series, self.steps)

    @property
    def effective_rank(self) -> float:
        """How many directions the walk took: 1 along a straight line, 0 where it did not move."""
        from pellucid.explorer.monitors import effective_rank

        return effective_rank(self.points)

    def log_volume(self, *, share: float = 0.9, beside: Trajectory | None = None) -> Tensor:
        """The logarithm of the volume that each token explored (m).

        Of the box around its saved points along their principal axes, as many as it takes for this
        share of the variance. NaN for a token that did not move. Volumes of two walks can be
        compared along common axes only: those of the points of both, `beside` another walk.
        """
        from pellucid.explorer.monitors import log_volume

        return log_volume(self.points, share, None if beside is None else beside.points)

    def log_volume_ratio(self, other: Trajectory, *, share: float = 0.9) -> Tensor:
        """The logarithm of this walk's explored volume over another's, token by token (m).

        Both are measured along the principal axes of the points of both.
        """
        from pellucid.explorer.monitors import log_volume_ratio

        return log_volume_ratio(self.points, other.points, share)

    # ---- reading it for people ---------------------------------------------------------------

    def decode(self, model: Any = None, **options: Any) -> Decoded:
        """What the saved points look like as inputs, and what the model says of those.

        `using` says how: for images "inverse" (exact for an affine patch embedding), or "pixels"
        where the walk took place there; for texts "nearest" (the tokens whose embeddings are
        nearest), "mlm" (the paired masked language model given as `mlm`), or "head" (that model's
        head alone). `top` candidates are kept a token.
        """
        from pellucid.explorer.decode import decode

        return decode(self, self._model(model), **options)

    def alternatives(self, model: Any = None, **options: Any) -> list[Prompt]:
        """Other texts that the saved points suggest, and what the model says of each.

        For every saved point and walked token the `top` candidates, each in the original in the
        place of that token alone; with `everywhere` the j-th candidates in all places at once.
        `using` and `mlm` are those of `decode`.
        """
        from pellucid.explorer.alternatives import alternatives

        return alternatives(self, self._model(model), **options)

    def _model(self, model: Any) -> Any:
        found = self.model if model is None else model
        if found is None:
            raise ArgumentError(
                explain_error(
                    "decoding needs the model, which no file holds",
                    got="a trajectory that was read from a file",
                    expected="the model that was walked in",
                    instead=f"trajectory.decode(pellucid.load({self.provenance.model!r}))",
                )
            )
        return found

    # ---- showing -----------------------------------------------------------------------------

    def show(self) -> None:
        """Print it on a terminal, or display it in a notebook."""
        from pellucid.viz import show

        show(self)

    def to_html(
        self,
        path: str | Path | None = None,
        *,
        decoded: Decoded | None = None,
        overwrite: bool = False,
    ) -> str:
        """One self-contained page with a slider over the saved points; written if a path is given.

        Without `decoded` the points are decoded as `decode()` does, where the model is at hand.
        """
        from pellucid.viz import page, write_page

        html = page([self._with(decoded)])
        if path is not None:
            write_page(html, path, overwrite=overwrite)
        return html

    def plot(self, ax: Axes | None = None, *, series: str = "probabilities") -> Axes:
        """Draw the class probabilities or one of `SERIES` with matplotlib, and return the axes."""
        from pellucid.viz.plot_walk import plot_walk

        return plot_walk(self, ax, series)

    def _repr_html_(self) -> str:
        from pellucid.viz import fragment

        return fragment([self])

    def _with(self, decoded: Decoded | None) -> Any:
        return self if decoded is None else (self, decoded)

    # ---- keeping -----------------------------------------------------------------------------

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write it to one file of tensors and JSON; loading that file runs no code."""
        from pellucid._store import save_trajectory

        return save_trajectory(self, Path(path), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read what `save` wrote; anything else is refused."""
        from pellucid._store import load_trajectory

        return load_trajectory(Path(path))

    def to_dict(self) -> dict[str, Any]:
        """Everything but the picture and the points, in plain JSON types."""
        from pellucid._schema_trajectory import to_numbers

        return to_numbers(self)

    def at(self, iteration: int) -> int:
        """The place of a step among the saved points: the last one that is not later."""
        saved = self.iterations.tolist()
        return max(i for i, k in enumerate(saved) if k <= max(iteration, 0))

"""LOdds for images. VTranM (Wu et al., CVPR 2024), eq. 22; the runs of `aopc`.

The name is the paper's; the formula is a ratio of probabilities, not of odds. A mean of logarithms
is ruled by its lowest numbers.

It misleads where a single level makes the class very improbable: the logarithm of that one rules
the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._baselines import Baseline, Space
from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured
from pellucid.metrics._ranking import Ties, tie_fraction
from pellucid.metrics._replacing import deleted, pixel_counts, pixel_order, replacing_curves


@metric(
    cite="wu2024token",
    better="lower",
    family="faithfulness",
    kinds=("image",),
    reads="log_probability",
)
def log_odds(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    steps: int = 20,
    baseline: Baseline = "black",
    space: Space = "pixel",
    ties: Ties = "stable",
) -> Measured:
    """Mean change of the class's log-probability as the highest-scored 0, 5, ... 100 % are gone.

    -1/|K| sum_k log(p(x) / p(x_k)), in natural logarithms and without clipping.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)
    counts = pixel_counts(order[0].numel(), steps, "linspace", "log_odds")
    curves = replacing_curves(case, order, deleted(counts), baseline, space)  # b 1+steps
    return Measured(
        values=(curves - curves[:, :1]).mean(dim=1).tolist(),
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in maps],
    )

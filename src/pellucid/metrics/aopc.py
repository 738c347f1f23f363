"""AOPC for images. Samek et al., TNNLS 2017; levels and mean as in VTranM, eq. 21.

It misleads where black pixels are evidence of their own: what is measured is the model's view of
masked pictures, and the order of methods can change with the baseline.
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
    cite=("samek2017evaluating", "wu2024token"),
    better="higher",
    family="faithfulness",
    kinds=("image",),
)
def aopc(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    steps: int = 20,
    baseline: Baseline = "black",
    space: Space = "pixel",
    ties: Ties = "stable",
) -> Measured:
    """Mean loss of class probability over the levels 0, 5, ... 100 % of highest-scored pixels gone.

    1/|K| sum_k (p(x) - p(x_k)). The level 0, where nothing is lost, counts as one of the 21. What
    goes by this name for texts is another number.
    """
    maps = [explanation.map() for explanation in explanations]
    order = pixel_order(case, maps, ties)
    counts = pixel_counts(order[0].numel(), steps, "linspace", "aopc")
    curves = replacing_curves(case, order, deleted(counts), baseline, space)  # b 1+steps
    return Measured(
        values=(curves[:, :1] - curves).mean(dim=1).tolist(),
        curves=list(curves),
        ties=[tie_fraction(scores) for scores in maps],
    )

"""What an explanation has cost, as papers print it beside its quality. SLALOM, Table 13.

Seconds are those of the machine it was made on and of what else that did; passes are not.

It misleads where runs of different machines, batch sizes or loads are compared: passes through the
model are the number that travels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pellucid._case import Case
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Measured


@metric(cite="leemann2024attention", better="lower", family="cost")
def runtime(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    of: Literal["seconds", "forwards", "backwards"] = "seconds",
) -> Measured:
    """Seconds that the explanation took, as its share of its batch, or its passes by the model.

    Inputs of one batch have the same seconds, so an error of their mean says little unless each was
    explained alone. The passes, "forwards" and "backwards", are counted in either case.
    """
    costs = [explanation.provenance for explanation in explanations]
    return Measured(
        values=[float(getattr(cost, of)) for cost in costs],
        counts=[{"forwards": c.forwards, "backwards": c.backwards} for c in costs],
    )

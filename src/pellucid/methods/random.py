"""Random scores: the control that every comparison needs.

It misleads nobody who expects nothing: a method that a metric does not tell from it has not been
shown to explain anything.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(needs=Needs.NOTHING, signed=True, class_specific=False)
def random(case: Case) -> Tensor:
    """Independent standard normal scores, the same whenever seed and input are the same."""
    return case.randn()

"""Random scores: the control that every comparison needs."""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(needs=Needs.NOTHING, signed=True, class_specific=False)
def random(case: Case) -> Tensor:
    """Independent standard normal scores, the same whenever seed and input are the same."""
    return case.randn()

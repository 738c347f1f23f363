"""The same score everywhere: the control for what a metric gives to maps that are merely flat.

It misleads nobody who knows it: equal scores rank nothing, so a metric that prefers it to a method
prefers nothing.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(needs=Needs.NOTHING, signed=False, class_specific=False)
def uniform(case: Case) -> Tensor:
    """One for every token, or for every pixel of a model without tokens."""
    return case.ones()

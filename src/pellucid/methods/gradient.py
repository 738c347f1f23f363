"""The gradient, as a map of saliency. Simonyan et al. 2014, section 3.1.

How fast the target changes where an input number changes; the sign of the change is left out,
unless the sum is asked for.

It misleads where the model is saturated: a token that decides everything has no gradient once the
output is certain. It is what a small change would do, not what is there.
"""

from __future__ import annotations

from typing import Literal

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution


@method(needs=Needs.GRADIENTS, cite="simonyan2014deep", signed=False)
def gradient(case: Case, *, reduce: Literal["max", "norm", "sum"] = "max") -> Attribution:
    """The largest derivative of the target by a number of a token or pixel, in absolute size.

    `reduce` makes one score of the derivatives by all channels or features: the "max" of their
    absolute values, their Euclidean "norm", or their "sum" with its sign, which is for images: over
    the features of a word it vanishes before a layer norm.
    """
    found = case.gradient(case.input())  # b c h w, or b t d
    if reduce == "max":
        return Attribution(found.abs().amax(dim=1 if found.dim() == 4 else -1).to(case.dtype))
    if reduce == "norm":
        return Attribution(case.sum_features(found**2).sqrt())
    return Attribution(case.sum_features(found), signed=True)

"""Gradient times input. Shrikumar et al. 2016; Denil et al. 2014 for word embeddings.

The score is the first-order change of the target when the input is taken away, so it depends on
where zero is: for images on the normalisation, for texts on the origin of the word embeddings.

It misleads where the output is far from linear on the way to zero, as that of deep Transformers is:
a score may then have the wrong sign, and be no better than chance.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method


@method(needs=Needs.GRADIENTS, cite=("shrikumar2016just", "denil2014extraction"), signed=True)
def gradient_x_input(case: Case) -> Tensor:
    """Each input number times the derivative of the target by it, summed over a token or pixel."""
    x = case.input()  # b c h w pixels, or b t d word embeddings
    return case.sum_features(x * case.gradient(x))

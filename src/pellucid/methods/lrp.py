"""LRP down to the input, by the alpha-beta rules. Binder et al. 2016; Montavon et al. 2017.

The classical propagation, as Chefer et al., CVPR 2021, compare with it: activations, softmax and
norms pass relevance on unchanged.

It misleads on Transformers, whose softmax and norms are not the identity that relevance passes them
as; quotients by sums near zero are only tamed.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.relevance.deep_taylor import DeepTaylor


@method(
    needs=Needs.GRADIENTS | Needs.RULES,
    cite=("binder2016layer", "montavon2017explaining", "chefer2021transformer"),
    signed=True,
    presets={"chefer": {"epsilon": 0.0}},
)
def lrp(case: Case, *, alpha: float = 1.0, epsilon: float = 0.05) -> Tensor:
    """The relevance of each pixel or word embedding, by the alpha-beta rules of linear layers.

    `alpha` weighs what speaks for an output; beta = alpha - 1 weighs what speaks against it. A sum
    of states of either sign may be near zero, and dividing by it would make a map of nothing else;
    `epsilon` is its least size, as a fraction of how large it could be. Preset "chefer" has none.
    """
    relevance = case.gradient(case.input(), rules=DeepTaylor(alpha, epsilon=epsilon))
    return case.sum_features(relevance)

"""AttnLRP. Achtibat et al., ICML 2024, section 3.3; gamma rules for images as in their section 4.

Relevance propagation carried through attention: what a softmax got is shared by its Taylor
expansion, and what a product of two states got is shared by halves.

It misleads where much of the output comes from biases, positions or the model's own tokens, which
take their part of it: look at `absorbed` before comparing sums. Without the gamma rules maps of
images are noisy.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

from typing import Literal

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.relevance.gradient import GradientRules


@method(
    needs=Needs.GRADIENTS | Needs.RULES,
    cite="achtibat2024attnlrp",
    signed=True,
    presets={"vit": {"attention": "constant", "gamma": 0.05, "conv_gamma": 0.25}},
)
def attn_lrp(
    case: Case,
    *,
    attention: Literal["taylor", "constant"] = "taylor",
    gamma: float = 0.0,
    conv_gamma: float = 0.0,
) -> Attribution:
    """The relevance of each pixel or word embedding, by rules made for attention.

    `gamma` of linear layers (all of them, projections of attention included) and `conv_gamma` of
    convolutions favour what agrees with the sign of an output; 0 is the epsilon rule. Vision models
    need them, and constant attention (preset "vit"), against noise. What biases, positions and the
    model's own tokens kept of a logit is stored beside the scores as `absorbed`.
    """
    x = case.input()  # b c h w pixels, or b t d word embeddings
    relevance = x * case.gradient(x, rules=GradientRules(attention, "identity", gamma, conv_gamma))
    return case.with_absorbed(case.sum_features(relevance))

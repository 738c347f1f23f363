"""CP-LRP: conservative propagation through attention, down to the input. Ali et al., ICML 2022.

AttnLRP with attention probabilities as constants, so that relevance goes by the values alone.

It misleads where attention itself decides: its probabilities are constants here, so a token that
only directs attention to another gets nothing.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.relevance.gradient import GradientRules


@method(
    needs=Needs.GRADIENTS | Needs.RULES,
    cite=("ali2022xai", "achtibat2024attnlrp"),
    signed=True,
    presets={"vit": {"gamma": 0.05, "conv_gamma": 0.25}},
)
def cp_lrp(case: Case, *, gamma: float = 0.0, conv_gamma: float = 0.0) -> Attribution:
    """The relevance of each pixel or word embedding, with attention as a constant.

    `gamma` of linear layers and `conv_gamma` of convolutions are those of `attn_lrp`. Only
    constants keep relevance (biases, positions, the model's own tokens): how much of a logit they
    kept is stored beside the scores as `absorbed`.
    """
    x = case.input()  # b c h w pixels, or b t d word embeddings
    relevance = x * case.gradient(x, rules=GradientRules("constant", "identity", gamma, conv_gamma))
    return case.with_absorbed(case.sum_features(relevance))

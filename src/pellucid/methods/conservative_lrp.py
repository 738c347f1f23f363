"""Conservative LRP. Ali et al., XAI for Transformers, ICML 2022, section 3.

Gradient times input of a model whose attention probabilities and standard deviations of its norms
are constants. It is read where the first block is entered, so that every token has a score.

It misleads where attention itself decides: its probabilities are constants here, so a token that
only directs attention to another gets nothing.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

from typing import Literal

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Attribution
from pellucid.relevance.gradient import GradientRules


@method(needs=Needs.STREAM | Needs.RULES, cite="ali2022xai", signed=True)
def conservative_lrp(
    case: Case, *, activations: Literal["identity", "gradient"] = "identity", gamma: float = 0.0
) -> Attribution:
    """The relevance of each token's embedding, with attention and norms as constants.

    `activations` pass relevance on unchanged ("identity"), or by their gradient, which does not
    conserve it. `gamma` is that of linear layers, as in `attn_lrp`.
    """
    x = case.input("embedding")  # b t d
    rules = GradientRules("constant", activations, gamma)
    relevance = x * case.gradient(x, "embedding", rules=rules)
    return case.with_absorbed(case.sum_features(relevance))

"""Partial LRP: the relevance of the last attention. Voita et al., ACL 2019, as in Chefer et al.

Voita et al. stop the propagation at the heads of attention; Chefer et al., CVPR 2021, read what
arrives at the last block's attention map as an explanation.

It misleads where the evidence was read in earlier blocks, as it is the relevance of one map of the
last.

LRP is patented by its inventors. Whoever builds it into a product should check for themselves.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.relevance.deep_taylor import DeepTaylor


@method(
    needs=Needs.ATTENTION | Needs.READOUT | Needs.RULES,
    cite=("voita2019analyzing", "chefer2021transformer"),
    signed=False,
    presets={"chefer": {"epsilon": 0.0}},
)
def partial_lrp(case: Case, *, epsilon: float = 0.05) -> Tensor:
    """What arrives by LRP at the last attention map, its positive part averaged over heads.

    `epsilon` is that of `lrp`.
    """
    trace = case.record(Needs.ATTENTION, gradients=True, rules=DeepTaylor(epsilon=epsilon))
    (relevance,) = trace.gradients("attention", first=-1)  # b h t s
    return case.read(relevance.clamp(min=0).mean(dim=1))

"""Raw attention: the map of one block. Examined by Jain and Wallace, NAACL 2019.

It misleads where attention is read as effect: a token that is attended to may carry little, it is
one block of many, and the map is the same whatever class is asked for.
"""

from __future__ import annotations

from torch import Tensor

from pellucid._arguments import position
from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.methods._heads import Fuse, fused


@method(
    needs=Needs.ATTENTION | Needs.READOUT,
    cite="jain2019attention",
    signed=False,
    class_specific=False,
)
def raw_attention(
    case: Case, *, layer: int = -1, fuse: Fuse = "mean", head: int | None = None
) -> Tensor:
    """How much the token that the prediction is read from attends to each, in the last block.

    `layer` chooses another block (a negative number counts from the end); `fuse` joins the heads,
    unless `head` chooses one of them.
    """
    attention = case.record(Needs.ATTENTION).each("attention")
    maps = attention[position("layer", layer, len(attention))]  # b h t s
    if head is not None:
        return case.read(maps[:, position("head", head, maps.shape[1], "head")])
    return case.read(fused(maps, fuse))

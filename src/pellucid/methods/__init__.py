"""The table of all explanation methods: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Method
from pellucid.methods.attn_lrp import attn_lrp
from pellucid.methods.conservative_lrp import conservative_lrp
from pellucid.methods.cp_lrp import cp_lrp
from pellucid.methods.gradient_x_input import gradient_x_input
from pellucid.methods.lrp import lrp
from pellucid.methods.partial_lrp import partial_lrp
from pellucid.methods.pullback import pullback
from pellucid.methods.random import random
from pellucid.methods.rollout import rollout
from pellucid.methods.transformer_attribution import transformer_attribution

METHODS: dict[str, Method] = {
    found.name: found
    for found in (
        gradient_x_input,
        rollout,
        pullback,
        lrp,
        partial_lrp,
        conservative_lrp,
        transformer_attribution,
        attn_lrp,
        cp_lrp,
        random,
    )
}

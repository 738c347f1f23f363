"""The table of all explanation methods: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Method
from pellucid.methods.gradient import gradient
from pellucid.methods.gradient_x_input import gradient_x_input
from pellucid.methods.integrated_gradients import integrated_gradients
from pellucid.methods.occlusion import occlusion
from pellucid.methods.pullback import pullback
from pellucid.methods.random import random
from pellucid.methods.rise import rise
from pellucid.methods.rollout import rollout
from pellucid.methods.smoothgrad import smoothgrad
from pellucid.methods.tis import tis
from pellucid.methods.vit_cx import vit_cx

METHODS: dict[str, Method] = {
    found.name: found
    for found in (
        gradient,
        gradient_x_input,
        integrated_gradients,
        smoothgrad,
        rollout,
        pullback,
        occlusion,
        rise,
        vit_cx,
        tis,
        random,
    )
}

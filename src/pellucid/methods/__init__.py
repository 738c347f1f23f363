"""The table of all explanation methods: one file each, one line each."""

from __future__ import annotations

from pellucid._spec import Method
from pellucid.methods.gradient_x_input import gradient_x_input
from pellucid.methods.pullback import pullback
from pellucid.methods.random import random
from pellucid.methods.rollout import rollout

METHODS: dict[str, Method] = {
    found.name: found
    for found in (
        gradient_x_input,
        rollout,
        pullback,
        random,
    )
}

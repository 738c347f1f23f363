"""Importance by the pullback metric. SiMEC paper, Algorithm 3.

A token matters as much as the largest eigenvalue of its block of the metric says: the square of the
most that the output can move, to first order, when its embedding moves by one.

It misleads where it is read as evidence for a class: it says how much the prediction could change
by a small move of a token, not that the token supports it.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid.geometry.importance import Measure, block_importance
from pellucid.geometry.narrow import narrow_rows
from pellucid.geometry.outputs import Output, pulled_back

Measured = Literal[
    "default", "logits", "centred_logits", "probabilities", "fisher", "log_odds", "hidden"
]


@method(
    needs=Needs.STREAM,
    cite="benfenati2024unveiling",
    signed=False,
    class_specific=False,
    presets={"paper": {"output": "hidden"}},
)
def pullback(
    case: Case, *, output: Measured = "default", top_k: int = 0, measure: Measure = "largest"
) -> Tensor:
    """The largest eigenvalue of every token's block of the pullback metric.

    `output` is what the model's answer is measured by: "default" is all logits less their mean, or
    the Fisher metric of the ten likeliest of many; "hidden", the state that the prediction is read
    from, is what the authors' code uses (preset "paper"). `top_k` tells only that many classes
    apart. `measure` is "largest", its "root", or the "trace" of the block.
    """
    if output == "hidden":
        return _importance(case, case.jacobian_of_read_states().rows(), measure)
    asked = _output(case, output, top_k or None)
    if asked.is_wide(case.rows.shape[-1]):
        narrow, weight = case.jacobian_of_head_input()
        return _importance(
            case, narrow_rows(narrow, weight, case.rows[:, 0], asked.quantity), measure
        )
    classes = None if case.objective.classes is None else case.objective.classes[:, 0]
    coordinates = asked.bind(case.rows[:, 0], classes)
    jacobian = case.jacobian(of=coordinates)
    rows = jacobian.rows()  # b r t d
    own = pulled_back(coordinates, jacobian.y.double(), rows.double())  # b q t d
    return _importance(case, own.to(rows.dtype), measure)


def _output(case: Case, name: str, top_k: int | None) -> Output:
    if case.target.function is not None or case.rows.shape[1] != 1:
        raise ArgumentError(
            explain_error(
                "the pullback is of one prediction",
                got=f"target: {case.target.describe()}",
                expected="a class, a masked word or a next token",
                instead="target=None",
            )
        )
    if name == "default":
        softmax = case.adapter.task in ("classification", "masked", "causal")
        return Output.default(case.rows.shape[-1], softmax, top_k)
    found = Output.parse(name, top_k)
    assert found is not None
    return found


def _importance(case: Case, rows: Tensor, measure: Measure) -> Tensor:
    """Importance in float64 with nothing on padding, in the model's own type or float32."""
    own = rows.double() * case.mask[:, None, :, None].to(rows.device)
    return block_importance(own, measure).to(torch.promote_types(rows.dtype, torch.float32))

"""What an explanation says that removing tokens would do to the number it explains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid.metrics._keeping import tokens_of
from pellucid.surrogates.counts import shares


def predicted_change(explanation: Explanation, kept: Tensor) -> Tensor:
    """F(kept tokens) - F(all tokens) as the explanation has it: m t -> m.

    Scores that add up predict less the sum of what is removed. A SLALOM, which carries "values" and
    "importance" for every token, predicts the change of its softmax-weighted mean value: F(u) = sum
    over the members of softmax_u(s) v. The model's own tokens always stay; they are members where
    the SLALOM has weights that are "permanent".
    """
    own, extras = tokens_of(explanation), explanation.extras
    stays = kept | ~own
    if not set(extras) >= _SLALOM:
        return -((~stays).double() @ explanation.scores.double())
    members = own | bool(len(extras["permanent"]))
    every = torch.cat([torch.ones_like(stays[:1]), stays]) & members  # 1+m t
    outputs = shares(every.double(), extras["importance"].double()) @ extras["values"].double()
    return outputs[1:] - outputs[0]


_SLALOM = {"values", "importance", "permanent"}


def check_same_number(case: Case, explanations: Sequence[Explanation], metric: str) -> None:
    """Refuse explanations of another number: a change of probability is not one of log-odds."""
    for explanation in explanations:
        goal = explanation.target
        if goal is None or replace(goal, label=case.target.label) != case.target:
            quantity = case.target.quantity
            raise ArgumentError(
                explain_error(
                    f"{metric} compares changes of one number for all explanations",
                    got=f"an explanation of the {explanation.explains}",
                    expected=f"explanations of the {(quantity or '').replace('_', '-')} of a class",
                    instead=f"target=pellucid.Target.{quantity}({explanation.label!r}) "
                    "in pellucid.explain",
                )
            )

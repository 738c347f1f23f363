"""What a function of texts or images returned, checked and turned into logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from pellucid._errors import ArgumentError, ModelError, NumericalError, explain_error

Gives = Literal["logits", "log_probabilities", "probabilities", "log_odds"]
_OFF = 1e-2  # by which a row of probabilities may miss 1: two digits are left in bfloat16


def check_gives(gives: Any, labels: int) -> None:
    """Whether `gives` names something that a function of so many labels can return."""
    if gives is not None and gives not in get_args(Gives):
        raise ArgumentError(
            explain_error(
                "it is not known what the function returns",
                got=f"gives={gives!r}",
                expected=f"one of {', '.join(map(repr, get_args(Gives)))}",
                instead="gives='logits'",
            )
        )
    if gives == "log_odds" and labels != 2:
        raise ArgumentError(
            explain_error(
                "one number a text is the log-odds of the second of two labels",
                got=f"gives='log_odds' for {labels} labels",
                expected="two labels, the one that positive numbers speak for last",
                instead="labels=['negative', 'positive']",
            )
        )


def as_logits(
    answer: Any, gives: Gives | None, inputs: Sequence[str], labels: int, name: str
) -> Tensor:
    """One row of logits an input (b c) from an answer in any numeric form.

    The softmax of the logits is the distribution over the labels, whatever the answer was. The
    inputs are what errors call them.
    """
    scores = _as_numbers(answer)
    if gives == "log_odds":
        return _from_log_odds(scores, answer, inputs, name)
    if scores is None or scores.shape != (len(inputs), labels):
        instead = "return model.predict_log_proba(inputs)"
        if scores is not None and labels == 2 and scores.numel() == len(inputs):
            instead = "pellucid.blackbox(..., gives='log_odds')"
        shape = f"({len(inputs)}, {labels})"
        raise _wrong_shape(scores, answer, len(inputs), shape, instead, name)
    _check_finite(scores, gives, inputs, name)
    if gives in ("probabilities", "log_probabilities"):
        return _from_distribution(scores, gives, inputs, name)
    _refuse_unnamed_probabilities(scores, gives, name)
    return scores


def _from_log_odds(scores: Tensor | None, answer: Any, inputs: Sequence[str], name: str) -> Tensor:
    """Half of the log-odds for the second label and half against the first, so they sum to zero."""
    if scores is None or scores.shape not in ((len(inputs),), (len(inputs), 1)):
        instead = "gives='logits' for one number a label"
        raise _wrong_shape(scores, answer, len(inputs), f"({len(inputs)},)", instead, name)
    _check_finite(scores, "log_odds", inputs, name)
    half = scores.reshape(-1) / 2
    return torch.stack([-half, half], dim=1)


def _from_distribution(scores: Tensor, gives: Gives, inputs: Sequence[str], name: str) -> Tensor:
    probabilities = scores if gives == "probabilities" else scores.exp()
    outside = (probabilities < 0) | (probabilities > 1 + _OFF)
    off = (probabilities.sum(dim=1) - 1).abs() > _OFF
    wrong = (outside.any(dim=1) | off).nonzero()[:, 0].tolist()
    if wrong:
        raise ModelError(
            explain_error(
                f"the function {name} did not return {gives.replace('_', '-')}",
                got=f"{_rounded(scores[wrong[0]])} for {inputs[wrong[0]]}",
                expected="numbers from 0 to 1 in each row, which sum to 1"
                if gives == "probabilities"
                else "rows whose exponentials sum to 1",
                instead="gives='logits'",
            )
        )
    if gives == "log_probabilities":
        return scores
    impossible = (scores == 0).any(dim=1).nonzero()[:, 0].tolist()
    if impossible:
        raise NumericalError(
            explain_error(
                f"the function {name} returned a probability of zero, which has no logarithm",
                got=f"{_rounded(scores[impossible[0]])} for {inputs[impossible[0]]}",
                expected="probabilities above zero, or log-probabilities, which do not underflow",
                instead="return numpy.clip(probabilities, 1e-6, 1)",
            )
        )
    return scores.log()


def _refuse_unnamed_probabilities(scores: Tensor, gives: Gives | None, name: str) -> None:
    """Nobody said what these numbers are, and they look like probabilities."""
    if gives is not None or scores.shape[1] == 1:
        return
    sums_to_one = (scores.sum(dim=1) - 1).abs().max() < 1e-6
    if sums_to_one and bool(((scores >= 0) & (scores <= 1)).all()):
        raise ModelError(
            explain_error(
                f"the function {name} seems to return probabilities",
                got=f"rows that sum to 1, as {_rounded(scores[0])}",
                expected="to be told what they are",
                instead="pellucid.blackbox(..., gives='probabilities'), or gives='logits'",
            )
        )


def _check_finite(scores: Tensor, gives: Gives | None, inputs: Sequence[str], name: str) -> None:
    bad = (~torch.isfinite(scores)).reshape(len(scores), -1).any(dim=1).nonzero()[:, 0].tolist()
    if bad:
        raise NumericalError(
            explain_error(
                f"the function {name} returned numbers that are not finite",
                got=f"{_rounded(scores[bad[0]].reshape(-1))} for {inputs[bad[0]]}",
                expected=f"finite {(gives or 'logits').replace('_', '-')}",
                instead="return numpy.clip(scores, -100, 100)",
            )
        )


def _wrong_shape(
    scores: Tensor | None, answer: Any, inputs: int, shape: str, instead: str, name: str
) -> ModelError:
    got = type(answer).__name__ if scores is None else tuple(scores.shape)
    what = "one score an input and label" if "," in shape[:-2] else "one number an input"
    return ModelError(
        explain_error(
            f"the function {name} did not return {what}",
            got=f"{got} for {inputs} inputs",
            expected=f"numbers of shape {shape}",
            instead=instead,
        )
    )


def _rounded(row: Tensor) -> list[float]:
    return [round(value, 3) for value in row[:8].tolist()]


def _as_numbers(answer: Any) -> Tensor | None:
    """The answer as a tensor, in whatever numeric form it came."""
    try:
        if isinstance(answer, list | tuple) and answer and isinstance(answer[0], Tensor):
            answer = torch.stack(list(answer))
        if isinstance(answer, Tensor):
            return answer.detach().cpu().double()
        return torch.as_tensor(np.asarray(answer, dtype=np.float64))
    except (TypeError, ValueError, RuntimeError):
        return None

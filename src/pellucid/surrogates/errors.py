"""How far a surrogate is from what it stands for. Leemann et al., TMLR 2024, appendix E.2, E.3.

The released notebook prints the absolute value of the mean error and calls it RMSE. That is the
bias, under which errors of both signs cancel; it is given here by its own name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates.counts import Unit, score_table
from pellucid.surrogates.slalom import Slalom


class Surrogate(Protocol):
    """What every surrogate here can do."""

    def predict(self, sequences: Sequence[Sequence[Unit]]) -> Tensor: ...


@dataclass(frozen=True)
class FitError:
    """Errors of the output, over sequences and classes."""

    mse: float
    bias: float  # |mean error|

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return math.sqrt(self.mse)


def fit_error(surrogate: Surrogate, sequences: Sequence[Sequence[Unit]], scores: Any) -> FitError:
    """The error of a surrogate on sequences whose scores are known: mean (F'(t) - F(t))^2."""
    target = score_table(scores, len(sequences))
    found = surrogate.predict(sequences)
    if found.shape != target.shape:
        raise ArgumentError(
            explain_error(
                "the surrogate has another number of classes than the scores",
                got=f"predictions of shape {tuple(found.shape)}",
                expected=f"{tuple(target.shape)}, as the scores",
                instead="scores[:, 1] - scores[:, 0] for a surrogate of log-odds",
            )
        )
    error = found - target
    return FitError(float(error.square().mean()), float(error.mean().abs()))


def recovery_error(found: Slalom, truth: Slalom) -> float:
    """The mean squared error of all values and importances of a SLALOM that was recovered.

    Importances count up to a constant, so both are centred first.
    """
    missing = set(truth.units) - set(found.units)
    if missing or found.value.shape[1:] != truth.value.shape[1:]:
        raise ArgumentError(
            explain_error(
                "the two SLALOMs are not of the same units and classes",
                got=f"{len(missing)} units missing, values of shape {tuple(found.value.shape)}",
                expected=f"the {len(truth.units)} units of the truth, values of shape "
                f"{tuple(truth.value.shape)}",
                instead="Slalom.fit(sequences, scores, units=truth.units)",
            )
        )
    places = [found.units.index(unit) for unit in truth.units]
    value = (found.value[places].double() - truth.value.double()).square().flatten()
    own, other = found.importance[places].double(), truth.importance.double()
    importance = ((own - own.mean()) - (other - other.mean())).square()
    return float((value.sum() + importance.sum()) / (len(value) + len(importance)))

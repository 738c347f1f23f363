"""How many passes through the model an input has cost, and the most that it may cost in all."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._errors import BudgetExceeded, explain_error


@dataclass
class Meter:
    """Counts the passes of each input through the model, and stops at the budget.

    `budget` is a number of passes, `seconds` a time; both are for one input, and inputs that are
    explained together share their time.
    """

    inputs: int
    budget: int | None = None
    backwards: int = 0
    seconds: float | None = None

    def __post_init__(self) -> None:
        self.forwards = torch.zeros(self.inputs, dtype=torch.long)
        self._began = time.perf_counter()

    @property
    def late(self) -> bool:
        """Whether the time is up."""
        if self.seconds is None:
            return False
        return time.perf_counter() - self._began > self.seconds * self.inputs

    def forward(self, rows: Tensor | None = None) -> None:
        """Account for one forward pass of every input, or for one of each row named."""
        forwards = self.forwards + self._passes(rows)
        self._check(forwards)
        self.forwards = forwards

    def afford(self, rows: Tensor) -> None:
        """Stop before the first of many passes where the budget does not reach to the last."""
        self._check(self.forwards + self._passes(rows))

    def _passes(self, rows: Tensor | None) -> Tensor:
        if rows is None:
            return torch.ones_like(self.forwards)
        return torch.bincount(rows.cpu(), minlength=self.inputs)

    def _check(self, forwards: Tensor) -> None:
        if self.late:
            assert self.seconds is not None
            raise BudgetExceeded(
                explain_error(
                    "the time is up, and this method cannot make do with what it has",
                    got=f"seconds={self.seconds:g}, and {int(self.forwards.max())} evaluations",
                    expected="time for all of its evaluations",
                    instead=f"seconds={4 * self.seconds:g}, or fewer samples",
                )
            )
        most = int(forwards.max())
        if self.budget is not None and most > self.budget:
            raise BudgetExceeded(
                explain_error(
                    "the budget of model evaluations is used up",
                    got=f"budget={self.budget}",
                    expected=f"at least {most} evaluations an input",
                    instead=f"budget={2 * most}, or fewer samples",
                )
            )

"""How many passes through the model an input has cost, and the most that it may."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._errors import BudgetExceeded, explain_error


@dataclass
class Meter:
    """Counts the passes of each input through the model, and stops at the budget."""

    inputs: int
    budget: int | None = None
    backwards: int = 0

    def __post_init__(self) -> None:
        self.forwards = torch.zeros(self.inputs, dtype=torch.long)

    def forward(self, rows: Tensor | None = None) -> None:
        """Account for one forward pass of every input, or for one of each row named."""
        self.forwards += self._passes(rows)
        self._check(self.forwards)

    def afford(self, rows: Tensor) -> None:
        """Stop before the first of many passes where the budget does not reach to the last."""
        self._check(self.forwards + self._passes(rows))

    def _passes(self, rows: Tensor | None) -> Tensor:
        if rows is None:
            return torch.ones_like(self.forwards)
        return torch.bincount(rows.cpu(), minlength=self.inputs)

    def _check(self, forwards: Tensor) -> None:
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

"""What a model says of many inputs: the probabilities that are asked for, and the likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._batches import run_in_batches
from pellucid._target import Target, check_finite
from pellucid._types import Picture, Text
from pellucid.adapters.base import Task
from pellucid.adapters.torch_model import TorchAdapter


@dataclass(frozen=True, eq=False)
class Predictions:
    """One row an input, on the CPU."""

    probabilities: Tensor  # n c, float64: of the classes asked for
    likeliest: Tensor  # n

    def take(self, rows: Tensor) -> Predictions:
        """The predictions of these inputs, in this order; a row may be taken several times."""
        return Predictions(self.probabilities[rows], self.likeliest[rows])


def probabilities(task: Task, logits: Tensor) -> Tensor:
    """What a model predicts, in float64 (b c); the value itself for a regression."""
    if task == "regression":
        return logits.double()
    return logits.double().sigmoid() if task == "multilabel" else logits.double().softmax(dim=-1)


def predict(
    adapter: TorchAdapter,
    items: Sequence[Text | Picture],
    target: Target,
    classes: Sequence[int],
    batch_size: int,
) -> Predictions:
    """The probabilities of these classes, and the likeliest of all, for every input."""

    def work(indices: list[int]) -> list[tuple[Tensor, Tensor]]:
        batch = adapter.batch([items[i] for i in indices], target)
        with torch.no_grad():
            logits = adapter.rows(adapter.output(batch), batch)[:, 0]  # b c
        check_finite(logits, adapter.name)
        found = probabilities(adapter.task, logits)
        shown = found[:, torch.tensor(classes, device=found.device)]
        return list(zip(shown.cpu(), found.argmax(dim=1).cpu(), strict=True))

    found = run_in_batches(items, work, batch_size, False, adapter.largest_batch)
    return Predictions(torch.stack([p for p, _ in found]), torch.stack([c for _, c in found]))

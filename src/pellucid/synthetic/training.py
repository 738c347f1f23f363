"""The loop: cross-entropy by AdamW on padded ids, leaving the global generators where they were."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid._arguments import integer, real
from pellucid._batches import Progress, reporting
from pellucid._errors import ArgumentError, NumericalError, explain_error
from pellucid.synthetic.tokenizers import PAD

_DECAY = 0.01  # of weights, a step
_WARM_UP = 0.1  # of all steps


@dataclass(frozen=True)
class Schedule:
    """How long, how fast, and by which draw."""

    epochs: int
    batch: int
    lr: float
    device: str | torch.device
    seed: int

    def __post_init__(self) -> None:
        integer("epochs", self.epochs, 0, 5)
        integer("batch", self.batch, 1, 20)
        integer("seed", self.seed, 0)
        if real("lr", self.lr, 1e-3) <= 0:
            raise ArgumentError(
                explain_error(
                    "a model does not learn without steps",
                    got=f"lr={self.lr!r}",
                    expected="a rate above zero",
                    instead="lr=1e-3",
                )
            )
        try:
            torch.empty(0, device=self.device)
        except (RuntimeError, AssertionError) as error:  # of torch, which was built without it
            raise ArgumentError(
                explain_error(
                    "nothing can be trained on this device",
                    got=f"device={str(self.device)!r} ({str(error).splitlines()[0]})",
                    expected="'cpu', or an accelerator that torch sees",
                    instead="device='cpu'",
                )
            ) from None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw by the seed alone; the generators of the process are as before afterwards."""
    accelerator = torch.accelerator.current_accelerator() or torch.device("cuda")
    devices = range(torch.accelerator.device_count())
    with torch.random.fork_rng(devices=devices, device_type=accelerator.type):
        torch.manual_seed(seed)
        yield


def trained(
    module: nn.Module, ids: Tensor, labels: Tensor, schedule: Schedule, progress: Progress
) -> nn.Module:
    """The module on its device and in evaluation, after so many rounds over all rows (n t).

    Rows are padded on the right, and cut where the longest of a batch ends.
    """
    module.to(schedule.device).train()
    lengths = (ids != PAD).sum(dim=1)
    ids, labels = ids.to(schedule.device), labels.to(schedule.device)
    optimizer = torch.optim.AdamW(module.parameters(), lr=schedule.lr, weight_decay=_DECAY)
    total = schedule.epochs * math.ceil(len(ids) / schedule.batch)
    rate = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _share(step, total))
    with reporting(progress, total, "training", "step") as report:
        for step, rows in enumerate(_batches(len(ids), schedule)):
            own = rows.to(schedule.device)
            loss = _loss(module, ids[own, : int(lengths[rows].max())], labels[own])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            rate.step()
            report(step + 1)
    _check_finite(module, schedule)
    return module.eval()


def _share(step: int, total: int) -> float:
    """The part of the rate: it rises along a line, as deep models need, and falls along another."""
    rising = _WARM_UP * total
    return min((step + 1) / max(rising, 1), (total - step) / max(total - rising, 1))


def _batches(many: int, schedule: Schedule) -> Iterator[Tensor]:
    """Rows of each step: all of them once an epoch, in an order drawn for it."""
    generator = torch.Generator().manual_seed(schedule.seed)
    for _ in range(schedule.epochs):
        yield from torch.randperm(many, generator=generator).split(schedule.batch)


def _loss(module: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
    output = module(input_ids=ids, attention_mask=(ids != PAD).long())
    return F.cross_entropy(getattr(output, "logits", output), labels)


def _check_finite(module: nn.Module, schedule: Schedule) -> None:
    if not all(bool(weight.isfinite().all()) for weight in module.parameters()):
        raise NumericalError(
            explain_error(
                "training ended in weights that are not finite",
                got=f"lr={schedule.lr!r}",
                expected="a rate at which the loss falls",
                instead=f"lr={schedule.lr / 10!r}",
            )
        )

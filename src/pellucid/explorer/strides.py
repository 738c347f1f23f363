"""How long an uncorrected step is, read off the spectrum of the metric.

    seed        s / sqrt(l_max)              the first-order change of the output is at most s
    published   s sqrt(l_min / l_max)        l_min the smallest eigenvalue that counts as nonzero
    official    s sqrt((l_min + 1e-6) / l_max), l_min over all eigenvalues, zeros included
    relative    s times the median length of a token's vector
    a number    that length
    adaptive    whatever keeps the change of the output in one step within the tolerance

In the seed paper s = 1 inside a class and 2 out of it (line 7 of Algorithms 1 and 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from pellucid.explorer.level import Seen
from pellucid.explorer.rows import pick, put
from pellucid.explorer.state import State
from pellucid.geometry.pullback import Pullback

Named = Literal["seed", "published", "official", "relative", "adaptive"]
NAMES = get_args(Named)


@dataclass(eq=False)
class Stride:
    """A rule for the step length; `longest` (b) bounds it, `typical` (b) is a token's length."""

    rule: Named | float
    scale: float
    longest: Tensor
    typical: Tensor
    tolerance: float = 1e-4
    order: int = 1

    def begin(self, state: State) -> None:
        """Adaptive steps begin short."""
        state.stride = (1e-2 * self.typical).minimum(self.longest)

    def __call__(self, metric: Pullback, state: State, rows: Tensor) -> Tensor:
        """The length of the next step (b, or b t for blocks)."""
        if self.rule == "adaptive":
            return self._like(pick(state.stride, rows), metric)
        length = self._by_rule(metric, rows)
        return length.minimum(self._like(pick(self.longest, rows), metric))

    def refuses(self, state: State, rows: Tensor, seen: Seen) -> Tensor:
        """Whether a step changed too much; the next one is made longer or shorter accordingly."""
        if self.rule != "adaptive":
            return torch.zeros(len(rows), dtype=torch.bool)
        change: Tensor = (seen.y - pick(state.y, rows)).norm(dim=1).clamp(min=1e-300)
        factor = (0.9 * (self.tolerance / change) ** (1 / (self.order + 1))).clamp(0.2, 5.0)
        put(
            state.stride,
            rows,
            (pick(state.stride, rows) * factor).minimum(pick(self.longest, rows)),
        )
        return (change > self.tolerance).cpu()

    def again(self, length: Tensor, state: State, rows: Tensor) -> Tensor:
        """The length of the next try, for those that were just refused."""
        stride = pick(state.stride, rows).view(-1, *[1] * (length.dim() - 1))
        return torch.where(length > 0, stride, 0.0)

    def _by_rule(self, metric: Pullback, rows: Tensor) -> Tensor:
        largest = metric.largest
        like = torch.ones_like(largest)
        if self.rule == "seed":
            return torch.where(largest > 0, self.scale / largest.sqrt(), torch.inf)
        if self.rule == "published":
            ratio = metric.smallest / largest
            return torch.where(largest > 0, self.scale * ratio.sqrt(), 0.0)
        if self.rule == "official":
            missing = metric.rows.shape[-1] > metric.singular.shape[-1]
            smallest = torch.zeros_like(largest) if missing else metric.values[..., -1]
            return torch.where(largest > 0, self.scale * ((smallest + 1e-6) / largest).sqrt(), 0.0)
        if self.rule == "relative":
            return self.scale * self._like(pick(self.typical, rows), metric)
        return like * float(self.rule)

    def _like(self, one_an_input: Tensor, metric: Pullback) -> Tensor:
        """The same for every token where each has a metric of its own."""
        shape = metric.largest.shape
        return one_an_input.view(-1, *[1] * (len(shape) - 1)).expand(shape).clone()

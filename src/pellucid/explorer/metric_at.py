"""`metric_at`: the pullback metric at an input itself, as an operator with its whole spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._inputs import each, gathered
from pellucid._target import Target
from pellucid._types import Picture, Text
from pellucid.adapters import as_adapter
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.level import Level
from pellucid.explorer.selection import select
from pellucid.explorer.space import find_space
from pellucid.geometry.importance import block_importance
from pellucid.geometry.outputs import Output, pulled_back
from pellucid.geometry.pullback import RELATIVE, Pullback, interactions, token_blocks


@dataclass(frozen=True, eq=False)
class MetricAt:
    """The pullback metric of one input: g = B'B over the tokens that may move.

    Vectors are laid out as the tokens are (m d); everything else of the input is held.
    """

    item: Text | Picture
    tokens: tuple[int, ...]  # the segments that may move
    rows: Tensor  # B (q m d), float64
    joint: Pullback  # of all tokens together (1 q n)
    output: str

    @property
    def values(self) -> Tensor:
        """The eigenvalues that can be other than zero, the largest first."""
        return self.joint.values[0]

    @property
    def vectors(self) -> Tensor:
        """Their eigenvectors (r m d)."""
        return self.joint.vectors[0].view(-1, *self.rows.shape[1:])

    @property
    def rank(self) -> int:
        """How many eigenvalues are not zero: the dimension of what the model sees here."""
        return int(self.joint.rank[0])

    @property
    def dimension(self) -> int:
        """The dimension of the equivalence class: all that the model does not see."""
        return self.rows[0].numel() - self.rank

    def matvec(self, v: Tensor) -> Tensor:
        """g v (m d)."""
        return self.joint.matvec(self._flat(v)).view_as(v)

    def norm(self, v: Tensor) -> float:
        """The length of a move as the model sees it: sqrt(v'gv)."""
        return float(self.joint.norm(self._flat(v))[0])

    def null_project(self, v: Tensor) -> Tensor:
        """The part of a move that the model does not see, to first order (m d)."""
        return self.joint.null_project(self._flat(v)).view_as(v)

    def token_values(self) -> Tensor:
        """The spectrum of every token's own block (m q), the largest first."""
        return Pullback(token_blocks(self.rows[None])).values[0]

    def importance(self) -> Tensor:
        """The largest eigenvalue of every token's block (m): Algorithm 3."""
        return block_importance(self.rows[None])[0]

    def interactions(self) -> Tensor:
        """How strongly two tokens act together: |B_s' B_t| (m m)."""
        return interactions(self.rows[None])[0]

    def _flat(self, v: Tensor) -> Tensor:
        return v.to(self.rows).reshape(1, -1)


@torch.inference_mode(False)
def metric_at(
    model: Any,
    inputs: Any,
    *,
    output: Any = None,
    top_k: int | None = None,
    tokens: Any = None,
    space: str = "embedding",
    zero: float | None = None,
) -> Any:
    """The pullback metric at one input, or at each of a list of them.

    `output`, `top_k`, `tokens` and `space` are those of `explore`; `zero` is the size, relative to
    the largest, below which a singular value counts as none.
    """
    adapter = as_adapter(model)
    adapter.check_state()
    place = find_space(adapter, space)
    assert isinstance(adapter, TorchAdapter)
    raw, several = gathered(inputs)
    target = Target.predicted()
    items = each(raw, lambda one: adapter.read(one, target))
    found = []
    for item in items:
        case = Case(adapter, adapter.batch([item], target), target)
        found.append(_metric(case, place, output, top_k, tokens, zero))
    return found if several else found[0]


def _metric(
    case: Case, place: Any, output: Any, top_k: int | None, tokens: Any, zero: float | None
) -> MetricAt:
    origin = place.start(case.batch)
    logits = case.rows[:, 0]
    softmax = case.adapter.task in ("classification", "masked", "causal")
    measured = Output.parse(output, top_k) or Output.default(logits.shape[-1], softmax)
    everyone = torch.arange(1)
    there = torch.ones(origin.shape[:2], dtype=torch.bool, device=origin.device)
    level = Level(case, place, origin, there, measured.bind(logits))
    seen, jacobian = level.linearise(origin.double(), everyone)
    rows = pulled_back(level.coordinates, seen.y, jacobian.double())  # 1 q t d
    chosen = there
    if case.mask.shape[1]:
        chosen = select(tokens, case.batch, lambda: block_importance(rows))
    own = rows[:, :, chosen[0]]
    relative = RELATIVE.get(origin.dtype, 1e-2) if zero is None else zero
    joint = Pullback(own.flatten(2), rank=seen.y.shape[1], zero=relative)
    moved = tuple(chosen[0].nonzero()[:, 0].tolist())
    return MetricAt(case.batch.items[0], moved, own[0], joint, measured.describe())

"""`metric_at`: the pullback metric at an input itself, as an operator with its whole spectrum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._inputs import each, gathered
from pellucid._target import Target
from pellucid._types import Picture, Text
from pellucid.adapters import as_adapter
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.level import Level
from pellucid.explorer.selection import check_whole, select
from pellucid.explorer.space import find_space
from pellucid.geometry.importance import block_importance
from pellucid.geometry.matrix_free import leading_rows
from pellucid.geometry.narrow import narrow_rows
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
    rank: int | None = None,
) -> Any:
    """The pullback metric at one input, or at each of a list of them.

    `output`, `top_k`, `tokens` and `space` are those of `explore`; over a whole vocabulary
    ("fisher" without `top_k`) it goes through the narrow state before the head. `zero` is the size,
    relative to the largest, below which a singular value counts as none. `rank` asks for that many
    leading directions only, found without a row for every output.
    """
    adapter = as_adapter(model)
    adapter.check_state()
    place = find_space(adapter, space)
    assert isinstance(adapter, TorchAdapter)
    raw, several = gathered(inputs)
    target = Target.predicted()
    items = each(raw, lambda one: adapter.read(one, target))
    found = []
    top_k = None if top_k is None else integer("top_k", top_k, 1, 10)
    rank = None if rank is None else integer("rank", rank, 1, 10)
    request = _Request(place, output, top_k, tokens, zero, rank)
    for item in items:
        case = Case(adapter, adapter.batch([item], target), target)
        found.append(request.metric(case))
    return found if several else found[0]


@dataclass(frozen=True)
class _Request:
    """What of the prediction is measured, and where."""

    place: Any
    output: Any
    top_k: int | None
    tokens: Any
    zero: float | None
    rank: int | None

    def metric(self, case: Case) -> MetricAt:
        """The metric of the one input of a case."""
        logits = case.rows[:, 0]
        softmax = case.adapter.task in ("classification", "masked", "causal")
        output = Output.parse(self.output, self.top_k) or Output.default(
            logits.shape[-1], softmax, self.top_k
        )
        rows = self._rows(case, output)  # 1 q t d
        chosen = torch.ones(rows.shape[:1] + rows.shape[2:3], dtype=torch.bool, device=rows.device)
        if case.mask.shape[1]:
            chosen = select(self.tokens, case.batch, lambda: block_importance(rows))
        else:
            check_whole(self.tokens)
        own = rows[:, :, chosen[0]]
        relative = RELATIVE.get(case.adapter.dtype, 1e-2) if self.zero is None else self.zero
        most = own.shape[1]
        if output.quantity in ("probabilities", "fisher") and output.function is None:
            most = min(most, logits.shape[-1] - 1)
        joint = Pullback(own.flatten(2), rank=most, zero=relative)
        moved = tuple(chosen[0].nonzero()[:, 0].tolist())
        return MetricAt(case.batch.items[0], moved, own[0], joint, output.describe())

    def _rows(self, case: Case, output: Output) -> Tensor:
        """B of all tokens (1 q t d): exactly, through a narrow head, or its leading part."""
        logits = case.rows[:, 0]
        if output.is_wide(logits.shape[-1]):
            narrow, weight = case.jacobian_of_head_input(_stream_place(self.place))
            return narrow_rows(narrow, weight, logits, output.quantity).double()
        coordinates = output.bind(logits)
        if self.rank is not None:
            at = _stream_place(self.place)
            hidden = output.quantity == "hidden"
            jacobian = (
                case.jacobian_of_read_states(at)
                if hidden
                else case.jacobian(at=at, of=lambda z: coordinates.psi(coordinates(z)))
            )
            leading = leading_rows(jacobian, self.rank, case.generators[0])
            return leading.view(1, -1, *jacobian.x.shape[1:])
        origin = self.place.start(case.batch)
        there = torch.ones(origin.shape[:2], dtype=torch.bool, device=origin.device)
        level = Level(case, self.place, origin, there, coordinates)
        seen, jacobian_rows = level.linearise(origin.double(), torch.arange(1))
        return pulled_back(coordinates, seen.y, jacobian_rows.double())


def _stream_place(place: Any) -> str:
    """The name by which a case knows a space of the stream."""
    at = getattr(place, "at", None)
    if at is None:
        raise ArgumentError(
            explain_error(
                "this measure is not worked out over pixels",
                got=f"space={place.name!r}",
                expected="space='embedding', 'word' or 'hidden:1'...",
                instead="space='embedding'",
            )
        )
    return str(at)

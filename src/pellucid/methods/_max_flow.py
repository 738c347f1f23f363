"""The largest flow through layers of nodes, to every node of the last layer. Goldberg and Tarjan.

Push-relabel with exact heights (JACM 35, 1988): all that the source gives is pushed along shortest
open ways in waves; between waves every node learns anew how far it is from the sink. What can no
longer arrive stays where it is, since only what arrives is asked for. All sinks are done at once.
"""

from __future__ import annotations

import torch
from torch import Tensor

_LEAST = 1e-14  # a capacity or an excess that counts
_AT_ONCE = 2**19  # numbers of one tensor, which then stays in the cache


def max_flows(capacities: Tensor, source: Tensor) -> Tensor:
    """The largest flow that reaches each node of the last layer (t), each for itself.

    `capacities` (m t s) lead from the nodes t of a layer to the nodes s of the next; the source
    gives at most `source` (t) to those of the first.
    """
    some = max(1, _AT_ONCE // capacities.numel())
    found = torch.zeros_like(source)
    for sinks in torch.arange(len(source)).split(some):
        flow = _Flow(capacities, source, sinks)
        while len(flow.sinks):
            flow.relabel()
            done = ~flow.waiting().flatten(1).any(dim=1)
            found[flow.sinks[done]] = flow.arrived()[done]
            flow.keep(~done)
            flow.wave()
    return found


class _Flow:
    """A flow for each of k sinks: what is still open, and what waits at nodes."""

    def __init__(self, capacities: Tensor, source: Tensor, sinks: Tensor) -> None:
        layers, width = len(capacities), len(source)
        self.sinks = sinks
        self.down = capacities.repeat(len(sinks), 1, 1, 1)  # k m t s: open from layer m to m + 1
        self.up = torch.zeros_like(self.down)  # k m t s: open from s of m + 1 back to t of m
        self.excess = source.new_zeros(len(sinks), layers + 1, width)  # k m t
        self.excess[:, 0] = source
        self.far = (layers + 1) * width  # more steps than any way has
        self.height = torch.full(self.excess.shape, self.far)

    def keep(self, rows: Tensor) -> None:
        """Go on with these sinks only."""
        if not rows.all():
            self.sinks, self.down, self.up = self.sinks[rows], self.down[rows], self.up[rows]
            self.excess, self.height = self.excess[rows], self.height[rows]

    def arrived(self) -> Tensor:
        """What has reached each sink (k)."""
        return self.excess[torch.arange(len(self.sinks)), -1, self.sinks]

    def waiting(self) -> Tensor:
        """Which nodes have something left that can still reach the sink (k m t)."""
        return (self.excess > _LEAST) & (self.height < self.far) & (self.height > 0)

    def relabel(self) -> None:
        """Set all heights to the number of open steps to the sink."""
        down, up = (self.down > _LEAST).float(), (self.up > _LEAST).float()
        self.height.fill_(self.far)
        self.height[torch.arange(len(self.sinks)), -1, self.sinks] = 0
        for level in range(self.far):
            near = (self.height == level).float()
            reached = torch.zeros_like(near)
            reached[:, :-1] += torch.einsum("kmts,kms->kmt", down, near[:, 1:])
            reached[:, 1:] += torch.einsum("kmts,kmt->kms", up, near[:, :-1])
            new = (reached > 0) & (self.height == self.far)
            if not new.any():
                return
            self.height[new] = level + 1

    def wave(self) -> None:
        """Push whatever waits one step nearer, from the highest node down."""
        heights = self.height[self.waiting()].tolist()
        for level in range(max(heights, default=0), 0, -1):
            own = self.excess * (self.height == level)  # k m t
            for layer in (own > _LEAST).any(dim=2).any(dim=0).nonzero().flatten().tolist():
                self._push(own[:, layer], layer, level)

    def _push(self, own: Tensor, layer: int, level: int) -> None:
        """What waits (k t) at nodes of this layer and level goes along its open ways, evenly."""
        near = (self.height == level - 1).to(own)
        layers = self.down.shape[1]
        total = torch.zeros_like(own)
        if layer < layers:
            down = self.down[:, layer] * near[:, layer + 1, None, :]  # k t s
            total += down.sum(dim=2)
        if layer > 0:
            up = self.up[:, layer - 1] * near[:, layer - 1, :, None]  # k s t
            total += up.sum(dim=1)
        share = (own / total.where(total > 0, torch.ones_like(total))).clamp(max=1)
        self.excess[:, layer] -= torch.minimum(own, total)
        if layer < layers:
            sent = down * share[:, :, None]
            self.down[:, layer] -= sent
            self.up[:, layer] += sent  # what flows along an edge can flow back along it
            self.excess[:, layer + 1] += sent.sum(dim=1)
        if layer > 0:
            sent = up * share[:, None, :]
            self.up[:, layer - 1] -= sent
            self.down[:, layer - 1] += sent
            self.excess[:, layer - 1] += sent.sum(dim=2)

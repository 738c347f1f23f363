"""Models whose function is known or plain: references and controls, not stand-ins for others.

They read padded ids as Transformers do, and give the logits of two classes.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pellucid.synthetic.tokenizers import SPECIALS


class FullyConnected(nn.Module):
    """ReLU layers on how often each word occurs: the reference that can learn a sum.

    Leemann et al., TMLR 2024, Figure 3a. Summing rows of a table is the first layer on counts.
    """

    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.table = nn.Embedding(words, width)
        nn.init.normal_(self.table.weight, std=words**-0.5)
        with torch.no_grad():
            self.table.weight[: len(SPECIALS)] = 0  # which never occur, and so never learn
        self.bias = nn.Parameter(torch.zeros(width))
        rest = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers - 1)]
        self.rest = nn.Sequential(nn.ReLU(), *rest, nn.Linear(width, 2))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (b 2)."""
        rows = self.table(input_ids) * attention_mask[..., None]  # b t d
        found: Tensor = self.rest(rows.sum(dim=1) + self.bias)
        return found


class Sum(nn.Module):
    """F(t) = bias + the sum of the weights of its words, exactly."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(weight[:, None].clone())
        self.bias = nn.Parameter(bias.clone())

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (b 2)."""
        weight = self.table(input_ids)[..., 0] * attention_mask  # b t
        return _two(weight.sum(dim=1) + self.bias)


class SoftmaxMean(nn.Module):
    """F(t) = sum of a_i v(t_i), the a_i a softmax of s(t_i), exactly: one head of attention.

    Leemann et al., TMLR 2024, Proposition 5.1, less everything around the head.
    """

    def __init__(self, value: Tensor, importance: Tensor) -> None:
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.stack([value, importance], dim=1))

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Logits (b 2)."""
        value, importance = self.table(input_ids).unbind(dim=-1)  # b t
        share = importance.masked_fill(attention_mask == 0, -torch.inf).softmax(dim=1)
        return _two((share * value).sum(dim=1))


def _two(log_odds: Tensor) -> Tensor:
    """The logits of two classes that are as far apart as log-odds (b 2)."""
    return torch.stack([-log_odds / 2, log_odds / 2], dim=1)

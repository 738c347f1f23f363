"""Nearness to the middle of the picture: the control for photographs, which were aimed.

It misleads nobody who knows it: it looks at no model, and does well wherever objects stand in the
middle.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._needs import Needs
from pellucid._spec import method
from pellucid._types import Picture

_WIDTH = 0.5  # of the hill, where the edges are at -1 and 1


@method(needs=Needs.NOTHING, signed=False, kinds=("image",), class_specific=False)
def centre(case: Case) -> Tensor:
    """A round hill over the middle, whatever the picture shows."""
    scores = case.ones()  # b t, or b h w
    for row, content, item in zip(scores, case.content, case.batch.items, strict=True):
        assert isinstance(item, Picture)
        if item.grid is None:
            row.copy_(_hill(*row.shape))
        else:
            row[content] = _hill(*item.grid).flatten().to(row)
    return scores


def _hill(rows: int, columns: int) -> Tensor:
    """exp(-(y^2 + x^2) / 2 w^2) in the middles of the cells of a grid."""
    y, x = ((2 * torch.arange(n) + 1 - n) / n for n in (rows, columns))
    return torch.exp(-(y[:, None] ** 2 + x**2) / (2 * _WIDTH**2))

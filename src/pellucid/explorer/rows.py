"""Some inputs of a batch: numbers on the CPU, in rising order; all of them means no copying."""

from __future__ import annotations

import torch
from torch import Tensor


def pick(tensor: Tensor, rows: Tensor) -> Tensor:
    """The rows of a tensor that has one an input."""
    return tensor if len(rows) == len(tensor) else tensor[rows.to(tensor.device)]


def put(tensor: Tensor, rows: Tensor, values: Tensor) -> None:
    """Write these rows of a tensor that has one an input."""
    if len(rows) == len(tensor):
        tensor.copy_(values)
    else:
        tensor[rows.to(tensor.device)] = values.to(tensor)


def renewed(tensor: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    """A tensor with these rows replaced; the values themselves where that is all of them."""
    if len(rows) == len(tensor):
        return values
    return tensor.index_copy(0, rows.to(tensor.device), values.to(tensor))


def where(rows: Tensor, chosen: Tensor) -> Tensor:
    """Those of the rows for which `chosen` (one a row, on any device) is true."""
    return rows[chosen.cpu()]


def within(rows: Tensor, some: Tensor) -> Tensor:
    """The places of some of the rows among the rows."""
    return torch.searchsorted(rows, some)

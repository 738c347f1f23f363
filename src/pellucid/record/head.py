"""The narrow state before a wide head: what the last linear map to all classes is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class HeadWatch(TorchFunctionMode):
    """Keep the input and the weight of the last linear map with `width` outputs, if any."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self._width = width
        self.state: Tensor | None = None  # b k d, or b t d
        self.weight: Tensor | None = None  # c d

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is F.linear and len(args) >= 2 and args[1].shape[0] == self._width:
            self.state, self.weight = args[0], args[1]
        return func(*args, **(kwargs or {}))

"""Attention probabilities of any model, by watching its arithmetic instead of editing its modules.

While the context is active, every `scaled_dot_product_attention`, every explicit softmax over a
(batch, head, query, key) tensor and every `multi_head_attention_forward` is carried out in plain
steps whose probabilities and values are handed to `observe` as tensors of the graph. So gradients
reach them, forward-mode derivatives exist, float64 models get a float64 softmax, and nothing of the
model is touched: the context lives in this thread and ends with the `with` block.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from pellucid.record.projection import LINEAR, Projection, read_projection

_MATMULS = {"matmul", "__matmul__", "bmm"}
_MULTI_HEAD = inspect.signature(F.multi_head_attention_forward)


@dataclass
class Attention:
    """One attention operation: what was attended to, what was read there, and how it went on."""

    probabilities: Tensor  # b h t s
    values: Tensor | None  # b h s d
    projection: Projection | None = None


class AttentionWatch(TorchFunctionMode):
    """Observe all attention inside the block; `blocked` keys (b s) get probability zero."""

    def __init__(
        self, observe: Callable[[Attention], None] | None = None, blocked: Tensor | None = None
    ) -> None:
        super().__init__()
        self._observe = observe or (lambda attention: None)
        self._blocked = None if blocked is None else blocked[:, None, None, :]  # b 1 1 s
        self._awaiting: Attention | None = None  # a softmax whose product with the values follows
        self._leaving: Attention | None = None  # one whose heads have read, but not left yet
        self.written_out = False  # whether a softmax was seen that the model itself computes

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._scaled_dot_product(*args, **kwargs)
        if func is F.multi_head_attention_forward:
            return self._multi_head(_MULTI_HEAD.bind(*args, **kwargs))
        name = getattr(func, "__name__", "")
        if name == "softmax" and _is_attention_softmax(*args, **kwargs):
            return self._explicit_softmax(args[0], kwargs.get("dtype"))
        if self._awaiting is not None and name in _MATMULS and len(args) == 2:
            self._complete(*args)
        output = func(*args, **kwargs)
        if self._leaving is not None and func in LINEAR:
            self._leave(func, args, output)
        return output

    def _scaled_dot_product(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if enable_gqa:
            key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
            value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = _widened(query) @ _widened(key).transpose(-2, -1) * scale  # b h t s
        if is_causal:
            allowed = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
            scores = scores.masked_fill(~allowed, -torch.inf)
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -torch.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        probabilities = self._probabilities(scores, masked=is_causal or attn_mask is not None)
        if probabilities.dim() == 4:
            self._leaving = Attention(probabilities, value)
            self._observe(self._leaving)
        return probabilities.to(value.dtype) @ value

    def _explicit_softmax(self, scores: Tensor, dtype: torch.dtype | None) -> Tensor:
        self.written_out = True
        self._awaiting = Attention(self._probabilities(_widened(scores)), None)
        self._observe(self._awaiting)
        wanted = torch.promote_types(scores.dtype, dtype or scores.dtype)
        return self._awaiting.probabilities.to(wanted)

    def _complete(self, left: Tensor, right: Tensor) -> None:
        """The product that follows a softmax over the same queries and keys reads the values."""
        assert self._awaiting is not None
        if left.shape == self._awaiting.probabilities.shape:
            self._awaiting.values = right
            self._leaving, self._awaiting = self._awaiting, None

    def _leave(self, func: Callable[..., Any], args: Sequence[Any], output: Tensor) -> None:
        """The first linear map of all heads side by side is that by which they enter the stream."""
        assert self._leaving is not None
        assert self._leaving.values is not None
        queries = self._leaving.probabilities.shape[-2]
        found = read_projection(func, args, output, self._leaving.values, queries)
        if found is not None:
            self._leaving.projection, self._leaving = found, None

    def _probabilities(self, scores: Tensor, masked: bool = False) -> Tensor:
        if self._blocked is not None and scores.dim() == 4:
            scores = scores.masked_fill(self._blocked.to(scores.device), -torch.inf)
            masked = True
        if not masked:
            return scores.softmax(dim=-1)
        nothing = (scores == -torch.inf).all(dim=-1, keepdim=True)  # a padded query sees no key
        return scores.masked_fill(nothing, 0.0).softmax(dim=-1).masked_fill(nothing, 0.0)

    def _multi_head(self, bound: inspect.BoundArguments) -> Any:
        """`nn.MultiheadAttention`, whose kernel hides its probabilities, in plain steps."""
        bound.apply_defaults()
        a = bound.arguments
        plain = a["bias_k"] is None and a["static_k"] is None and not a["add_zero_attn"]
        if not plain or a["query"].dim() != 3:
            return F.multi_head_attention_forward(*bound.args, **bound.kwargs)
        weights = (
            (a["q_proj_weight"], a["k_proj_weight"], a["v_proj_weight"])
            if a["use_separate_proj_weight"]
            else a["in_proj_weight"].chunk(3)
        )
        bias = (None, None, None) if a["in_proj_bias"] is None else a["in_proj_bias"].chunk(3)
        sources = (a["query"], a["key"], a["value"])  # t b d each
        heads = a["num_heads"]
        q, k, v = (
            F.linear(x, w, b).unflatten(-1, (heads, -1)).permute(1, 2, 0, 3)  # b h t d
            for x, w, b in zip(sources, weights, bias, strict=True)
        )
        mask = _joined_masks(a["attn_mask"], a["key_padding_mask"], q)
        seen: list[Attention] = []
        observe, self._observe = self._observe, seen.append
        try:
            mixed = self._scaled_dot_product(q, k, v, attn_mask=mask)  # b h t d
        finally:
            self._observe = observe
        self._observe(seen[0])
        joined = mixed.permute(2, 0, 1, 3).flatten(-2)  # t b d
        out = F.linear(joined, a["out_proj_weight"], a["out_proj_bias"])
        self._leave(F.linear, (joined, a["out_proj_weight"]), out)
        if not a["need_weights"]:
            return out, None
        maps = seen[0].probabilities
        return out, maps.mean(dim=1) if a["average_attn_weights"] else maps


def _is_attention_softmax(scores: Any = None, dim: Any = None, *_: Any, **__: Any) -> bool:
    return isinstance(scores, Tensor) and scores.dim() == 4 and dim in (-1, 3)


def _widened(scores: Tensor) -> Tensor:
    """Softmax in float32 at least, and in float64 where the model is."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def _joined_masks(attention: Tensor | None, padding: Tensor | None, query: Tensor) -> Tensor | None:
    """One additive mask (b h t s, or broadcasting to it) from the two that torch's module takes."""

    def additive(mask: Tensor) -> Tensor:
        if mask.dtype != torch.bool:
            return mask
        return torch.zeros_like(mask, dtype=query.dtype).masked_fill(mask, -torch.inf)

    parts = []
    if attention is not None:
        mask = additive(attention)
        parts.append(mask if mask.dim() == 2 else mask.unflatten(0, query.shape[:2]))
    if padding is not None:
        parts.append(additive(padding)[:, None, None, :])
    return sum(parts[1:], parts[0]) if parts else None

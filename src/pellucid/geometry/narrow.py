"""The metric of a wide vocabulary through the narrow state before its head.

With logits z = W u + b and u much narrower than z, g = J_u' C J_u with C = W'MW (d d), which is of
low numerical rank where the prediction is peaked. A root C = L'L with few rows turns thousands of
reverse passes into as many as L has rows. What is left out of C is at most the fraction `loss` of
its trace, so the error of g is at most loss tr(C) |J_u|^2.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid.geometry.jacobian import Jacobian


def narrow_rows(jacobian: Jacobian, weight: Tensor, logits: Tensor, quantity: str) -> Tensor:
    """B = L J_u (b r ...), from the Jacobian of the narrow state."""
    root = narrow_root(weight, logits, quantity)
    return jacobian.rows(cotangents=root.to(jacobian.y))


def narrow_root(weight: Tensor, logits: Tensor, quantity: str, loss: float = 1e-14) -> Tensor:
    """L (b r d) for the metric of `quantity` at the logits (b c), through W (c d), in float64."""
    values, vectors = torch.linalg.eigh(_metric(weight.double(), logits.double(), quantity))
    values = values.clamp(min=0)
    left_out = values.cumsum(dim=-1) <= loss * values.sum(dim=-1, keepdim=True)
    kept = values.shape[-1] - int(left_out.sum(dim=-1).min())
    root = (values.sqrt() * ~left_out)[..., None] * vectors.transpose(-2, -1)
    found: Tensor = root[..., -kept:, :].flip(-2)
    return found


def _metric(weight: Tensor, logits: Tensor, quantity: str) -> Tensor:
    """C = W'MW (b d d)."""
    if quantity == "logits":
        return (weight.T @ weight).expand(len(logits), -1, -1)
    if quantity == "centred_logits":
        centred = weight - weight.mean(dim=0)
        return (centred.T @ centred).expand(len(logits), -1, -1)
    if quantity not in ("probabilities", "fisher"):
        raise ArgumentError(
            explain_error(
                "this output cannot be measured over a whole vocabulary",
                got=f"output={quantity!r} over {logits.shape[-1]} tokens",
                expected="logits, centred_logits, probabilities or fisher",
                instead="top_k=10",
            )
        )
    p = logits.softmax(dim=-1)
    mean = p @ weight  # b d
    if quantity == "fisher":  # W'diag(p)W - (W'p)(W'p)'
        return torch.stack([(weight * one[:, None]).T @ weight for one in p]) - (
            mean[:, :, None] * mean[:, None, :]
        )
    spread = [one[:, None] * (weight - m) for one, m in zip(p, mean, strict=True)]  # dp/dz W
    return torch.stack([s.T @ s for s in spread])

"""Captum's methods inside `pellucid.explain`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._spec import Method
from pellucid._types import Attribution
from pellucid.adapters import TorchAdapter
from pellucid.compat.randomness import seeded

Reduce = Literal["sum", "norm", "max"]


class ScoreModule(nn.Module):
    """The number that a case explains, from the state of its input; `rows` are inputs' numbers.

    Whatever Captum makes of the batch (steps on a way, samples, blanked features), it repeats
    `rows` with it: so each version keeps its own class, its own padding, and its own positions.
    """

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.module = cast(TorchAdapter, case.adapter).module
        self.training = self.module.training
        self._case = case

    def forward(self, x: Tensor, rows: Tensor) -> Tensor:
        """The explained number of each version (n)."""
        return self._case.score_from(x, rows=rows)


def captum(
    make: Callable[[nn.Module], Any],
    *,
    reduce: Reduce = "sum",
    signed: bool = True,
    also: Callable[[Case], Mapping[str, Any]] | None = None,
    **settings: Any,
) -> partial[Any]:
    """A method for `explain` from one of Captum: ``method=captum(captum.attr.Saliency)``.

    `make` is an attribution class, or a function from a module to a configured object, such as
    ``lambda module: NoiseTunnel(Saliency(module))``. It explains the target of `explain` at the
    pixels or the word embeddings; `settings` are those of its ``.attribute``, and `also` makes the
    ones that depend on the batch (feature masks, baselines) from the `Case`. Captum's baseline
    stands in the place of every token, also of the model's own, which ours leave as they are.

    `reduce` makes one score of a token's features or a pixel's channels: their "sum", their "norm",
    or the "max" of their absolute values. `signed` is False for attributions that are sizes, as
    those of `Saliency`. What Captum draws is drawn from the seed for a whole batch at once: with
    ``explain(..., batch_size=1)`` an input's numbers do not depend on which others are there.
    """
    _check(make, reduce)
    name = f"captum.{getattr(make, '__name__', type(make).__name__).strip('<>')}"

    def attributed(case: Case, **settings: Any) -> Attribution:
        x = case.input()
        rows = torch.arange(len(x), device=x.device)
        _ = case.value  # the unchanged input runs before any hook is on the model
        tool = make(ScoreModule(case))
        given = settings | dict(also(case) if also else {})
        with seeded(case.generator(0, 0).initial_seed(), x.device):
            found = tool.attribute(x.clone(), additional_forward_args=(rows,), **given)
        scores, delta = found if given.get("return_convergence_delta") else (found, None)
        extras = {} if delta is None else {"convergence_delta": delta.detach().view(len(x), -1)}
        own = reduce == "sum" and signed
        return Attribution(_reduced(scores.detach(), x, case, reduce), extras, signed=own)

    spec = Method(attributed, name, Needs.NOTHING, (), signed=signed, declared=False)
    return partial(spec, **settings)


def _reduced(found: Any, x: Tensor, case: Case, reduce: Reduce) -> Tensor:
    """One score a token (b t) or a pixel (b h w)."""
    if found.shape != x.shape:
        raise ArgumentError(
            explain_error(
                "this attribution is not about the input",
                got=f"a tensor of shape {tuple(found.shape)}",
                expected=f"one of shape {tuple(x.shape)}, as the input has",
                instead="a method of the input, not of a layer: captum(captum.attr.Saliency)",
            )
        )
    features = 1 if found.dim() == 4 else -1
    if reduce == "max":
        return cast(Tensor, found.abs().amax(dim=features)).to(case.dtype)
    if reduce == "norm":
        return case.sum_features(found**2).sqrt()
    return case.sum_features(found)


def _check(make: Any, reduce: Any) -> None:
    if not callable(make):
        raise ArgumentError(
            explain_error(
                "this makes no attribution",
                got=repr(make),
                expected="an attribution class of Captum, or a function of a module",
                instead="captum(captum.attr.Saliency), not captum(captum.attr.Saliency(model))",
            )
        )
    if reduce not in ("sum", "norm", "max"):
        raise ArgumentError(
            explain_error(
                "features are not reduced like this",
                got=f"reduce={reduce!r}",
                expected="'sum', 'norm' or 'max'",
                instead="reduce='sum'",
            )
        )

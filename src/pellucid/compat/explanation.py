"""Anyone's scores as an explanation of pellucid, to be measured, stored and shown like ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import explain
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import Method
from pellucid._types import Attribution, Picture


def explanation(
    model: Any,
    input: Any,
    scores: Any,
    *,
    method: str,
    target: Any = None,
    signed: bool = True,
    params: Mapping[str, Any] | None = None,
) -> Explanation:
    """The explanation that these scores of one input are.

    Main arguments: `scores` is an array, a tensor or a list with one number for each token of the
    model, for each token that is not the model's own, for each patch (flat, or rows by columns), or
    for each pixel that the model sees; `method` is the name that it goes by; `target` is what was
    explained, as `explain` takes it (None: the predicted class).

    Other arguments: `signed` says whether a negative score speaks against the target; `params` are
    kept to be read.
    """
    given = _numbers(scores)

    def named(case: Case, **params: Any) -> Attribution:
        return Attribution(_fitted(given, case)[None], signed=signed)

    spec = Method(named, method, Needs.NOTHING, (), signed=signed, declared=False)
    configured = partial(spec, **(params or {}))
    return cast(Explanation, explain(model, [input], method=configured, target=target)[0])


def _numbers(scores: Any) -> Tensor:
    """The scores as a tensor of floating-point numbers, of its own memory."""
    try:
        found = scores if isinstance(scores, Tensor) else torch.as_tensor(np.asarray(scores))
        wide = torch.promote_types(found.dtype, torch.float32)
        return found.detach().to("cpu", wide, copy=True)
    except (TypeError, ValueError, RuntimeError):
        raise ArgumentError(
            explain_error(
                "these are not scores",
                got=f"{type(scores).__name__} {str(scores)[:60]!r}",
                expected="an array, a tensor or a list of numbers",
                instead="scores=attributions[0].sum(0)",
            )
        ) from None


def _fitted(scores: Tensor, case: Case) -> Tensor:
    """One score a token (t) or a pixel (h w) of the one input of the case."""
    item, own = case.batch.items[0], case.content[0].cpu()
    tokens, content = len(own), int(own.sum())
    accepted: dict[tuple[int, ...], str] = {}
    if tokens:  # an image model may have none
        what = "a patch" if isinstance(item, Picture) else "a token that is not the model's own"
        accepted |= {(tokens,): "one a token", (content,): f"one {what}"}
    if isinstance(item, Picture):
        accepted |= {} if item.grid is None else {item.grid: "rows and columns of patches"}
        accepted[item.view.shape[:2]] = "one a pixel"
    found = tuple(scores.shape)
    if found not in accepted:
        raise ArgumentError(
            explain_error(
                "the scores fit nothing that this model reads",
                got=f"scores of shape {found}",
                expected=", or ".join(f"{shape}: {what}" for shape, what in accepted.items()),
                instead="scores.sum(0) over channels or features, and one input at a time",
            )
        )
    if found == (tokens,) or accepted[found] == "one a pixel":
        return scores
    whole = scores.new_zeros(tokens)
    whole[own] = scores.flatten()
    return whole

"""pellucid's methods behind the call that Captum's have: ``.attribute(inputs, target=...)``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._batches import run_in_batches
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._explain import attribution_of
from pellucid._needs import require
from pellucid._spec import Method, as_method, bound_parameters
from pellucid._target import Target
from pellucid._types import Batch, Picture
from pellucid.adapters import TorchAdapter
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text_model import TextModel
from pellucid.compat.logits import torch_adapter
from pellucid.compat.spread import spread
from pellucid.compat.tensors import NAMES, checked_pixels, pictures_of, text_batch, texts_of
from pellucid.methods import METHODS
from pellucid.record import precision


@dataclass(frozen=True)
class Attributor:
    """A configured method of pellucid on one model."""

    adapter: TorchAdapter
    spec: Method
    params: Mapping[str, Any]

    @torch.inference_mode(False)
    def attribute(
        self,
        inputs: Tensor,
        target: Any = None,
        additional_forward_args: Any = None,
        *,
        seed: int = 0,
        batch_size: int = 8,
    ) -> Tensor:
        """Scores of the shape of `inputs`: pixels (b c h w), or the ids of texts (b t).

        A patch's score is shared evenly by its pixels and theirs by their channels, so that sums
        stay; scores of the model's own tokens ([CLS]) have no pixel and are left out. `target` is a
        class for all inputs or one for each, as a list or tensor; None is what the model predicts
        for each. For texts, `additional_forward_args` are those of a `logits_module`: the attention
        mask first.
        """
        batch = self._batch(inputs, additional_forward_args)
        self.adapter.check_state()
        self.adapter.weights_hash()  # which finds bad weights
        goals = _targets(target, len(batch), self.spec)
        seed, batch_size = integer("seed", seed, 0), integer("batch_size", batch_size, 1, 8)
        found: dict[int, Tensor] = {}
        for goal, rows in goals.items():
            some = self._explain(batch.take(rows), goal, seed, batch_size)
            found |= dict(zip(rows, some, strict=True))
        scores = torch.stack([found[row] for row in range(len(batch))])
        if isinstance(self.adapter, ImageModel):
            pictures = cast(Sequence[Picture], batch.items)
            scores = spread(scores, pictures, inputs.shape[1])
        return scores.to(inputs.device)

    def _explain(self, whole: Batch, goal: Target, seed: int, batch_size: int) -> list[Tensor]:
        """The scores of inputs that are explained for one class."""

        def work(chosen: list[int]) -> list[Tensor]:
            batch = whole.take(chosen)
            case = Case(self.adapter, batch, goal, seed=seed, batch_size=batch_size, spec=self.spec)
            with precision.formulas(self.adapter.device):
                return list(attribution_of(case, self.spec, self.params).scores)

        return run_in_batches(whole.items, work, batch_size, False, self.adapter.largest_batch)

    def _batch(self, inputs: Any, rest: Any) -> Batch:
        _check_tensor(inputs, self.adapter)
        if isinstance(self.adapter, ImageModel):
            pixels = checked_pixels(self.adapter, inputs.detach())
            items = pictures_of(self.adapter, pixels)
            shape = (len(items), len(items[0].segments))
            mask = torch.ones(shape, dtype=torch.bool, device=self.adapter.device)
            return Batch({self.adapter.reader.argument: pixels}, items, mask)
        model = cast(TextModel, self.adapter)
        rest = rest if isinstance(rest, tuple) else (rest,)
        batch = text_batch(model, {**dict(zip(NAMES, rest, strict=False)), "input_ids": inputs})
        return replace(batch, items=texts_of(model, batch))


def attribute(
    model: Any, *, method: str | Callable[..., Any] = "gradient_x_input", **params: Any
) -> Attributor:
    """A method of pellucid as an object with Captum's call.

    ``attribute(model, method="rollout").attribute(pixels, target=[3, 5])`` is a tensor like
    `pixels`. Further keywords are the method's own.
    """
    adapter = torch_adapter(model)
    spec, settings = as_method(method, METHODS)
    params = bound_parameters(spec, settings | params)
    require(adapter, spec, METHODS)
    return Attributor(adapter, spec, params)


def _targets(target: Any, count: int, spec: Method) -> dict[Target, list[int]]:
    """Which rows are explained for which class."""
    if isinstance(target, Tensor | np.ndarray | np.generic):
        target = target.tolist()
    given = target if isinstance(target, list) else [target]
    given = given * count if len(given) == 1 else given
    if len(given) != count:
        raise ArgumentError(
            explain_error(
                "there must be one target for all inputs, or one for each",
                got=f"{len(given)} targets for {count} inputs",
                expected=f"1 or {count}",
                instead="target=0",
            )
        )
    rows: dict[Target, list[int]] = defaultdict(list)
    for row, one in enumerate(given):
        rows[Target.parse(one).with_default(spec.explains)].append(row)
    return rows


def _check_tensor(inputs: Any, adapter: TorchAdapter) -> None:
    ids = adapter.kind == "text"
    if not isinstance(inputs, Tensor):
        got = type(inputs).__name__
    elif ids and inputs.is_floating_point():
        got = "word embeddings, in which tokens cannot be told from padding"
    elif inputs.numel() == 0:
        got = "an empty tensor"
    else:
        return
    raise ArgumentError(
        explain_error(
            "a method of pellucid is given what the model reads, as one tensor",
            got=got,
            expected="ids (batch, tokens)" if ids else "pixels (batch, channels, height, width)",
            instead="x, rest = pellucid.compat.encoded(model, inputs"
            + (", at='ids')" if ids else ")"),
        )
    )

"""Feasible regions by name, and from data."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid._arguments import integer, real
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._inputs import each, gathered
from pellucid._target import Target
from pellucid.adapters import as_adapter
from pellucid.adapters.image_model import ImageModel
from pellucid.adapters.text_model import TextModel
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.patches import PatchEmbedding, PatchRange
from pellucid.explorer.regions import Box, Everywhere, NormRange, Region
from pellucid.explorer.space import Pixels, Space, Stream, find_space, to_patches
from pellucid.explorer.vocabulary import vocabulary_bounds

Rule = Literal["minmax", "quantile", "gauss"]


def feasible(
    model: Any,
    inputs: Any,
    *,
    space: str = "embedding",
    rule: Rule = "minmax",
    amount: float | None = None,
    batch_size: int = 32,
) -> Region:
    """The box that the states of these inputs fill, for `explore(..., within=...)`.

    Images have bounds of their own at every patch; texts have the same at every position. `rule`
    is "minmax", "quantile" (`amount` is what is left out at each end, 0.01) or "gauss" (`amount`
    standard deviations around the mean, 3). Include the input that is to be walked from.
    """
    adapter = as_adapter(model)
    if rule not in ("minmax", "quantile", "gauss"):
        raise ArgumentError(
            explain_error(
                "unknown rule for a box of data",
                got=f"rule={rule!r}",
                expected="'minmax', 'quantile' or 'gauss'",
                instead="rule='minmax'",
            )
        )
    place = find_space(adapter, space)
    assert isinstance(adapter, TorchAdapter)
    target = Target.predicted()
    raw, _ = gathered(inputs)
    items = each(raw, lambda one: adapter.read(one, target))
    batch_size = integer("batch_size", batch_size, 1, 32)
    if not items:
        raise ArgumentError(
            explain_error(
                "no inputs to make a box of",
                got=f"inputs={inputs!r}",
                expected="a list of inputs, the one that is walked from among them",
                instead="pellucid.feasible(model, [first, second, third])",
            )
        )
    states: list[Tensor] = []
    for first in range(0, len(items), batch_size):
        batch = adapter.batch(items[first : first + batch_size], target)
        found = place.start(batch)
        if adapter.kind == "image":
            states.append(found)
        else:
            states.append(found[batch.mask][:, None])  # tokens 1 d
    low, high = _ends(torch.cat(states).double(), rule, amount)
    return Box(low[None], high[None], name=f"{rule} of {len(items)} inputs")


def _ends(states: Tensor, rule: Rule, amount: float | None) -> tuple[Tensor, Tensor]:
    if rule == "minmax":
        return states.amin(dim=0), states.amax(dim=0)
    if rule == "quantile":
        left = real("amount", 0.01 if amount is None else amount, 0.01)
        if not 0 <= left < 0.5:
            raise _out_of_range("quantile", left, "what is left out at each end, from 0 to 0.5")
        ends = [torch.quantile(states, q, dim=0) for q in (left, 1 - left)]
        return ends[0], ends[1]
    width = real("amount", 3.0 if amount is None else amount, 3.0) * states.std(dim=0)
    if amount is not None and amount <= 0:
        raise _out_of_range("gauss", amount, "a number of standard deviations greater than 0")
    mean = states.mean(dim=0)
    return mean - width, mean + width


def _out_of_range(rule: str, amount: float, expected: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "the amount does not make a box",
            got=f"rule={rule!r}, amount={amount}",
            expected=expected,
            instead=f"rule={rule!r}, amount=None",
        )
    )


def find_region(given: Any, case: Case, space: Space, origin: Tensor) -> Region:
    """The region by its name, as an object, or everywhere."""
    if isinstance(space, Pixels) and given is None:
        return _pixel_range(space, case, origin)
    if given is None:
        return Everywhere()
    if given == "bounds":
        return _bounds(case, space, origin)
    if given == "pixels":
        return _images(case, space, origin)
    if given == "layernorm":
        return _norm_range(case, space)
    if isinstance(given, str) or not hasattr(given, "chart"):
        raise ArgumentError(
            explain_error(
                "this is not a feasible region",
                got=f"within={given!r}",
                expected="'bounds', 'pixels', 'layernorm', or what pellucid.feasible returns",
                instead="within='bounds'",
            )
        )
    _check_shape(given, origin)
    return given  # type: ignore[no-any-return]  # a Region, as its chart says


def _check_shape(region: Any, origin: Tensor) -> None:
    low = getattr(region, "low", None)
    if isinstance(low, Tensor):
        try:
            low.expand_as(origin)
        except RuntimeError:
            raise ArgumentError(
                explain_error(
                    "the feasible region is one of other states",
                    got=f"bounds of shape {tuple(low.shape)} for states {tuple(origin.shape)}",
                    expected="a region made for this model and space",
                    instead="within=pellucid.feasible(model, inputs, space=...)",
                )
            ) from None


def _pixel_range(space: Pixels, case: Case, origin: Tensor) -> Box:
    """From black to white, in the numbers that the model reads."""
    adapter = space.adapter
    like = adapter.value_at(case.batch, "input")[:1].double()
    ends = [adapter.reader.normalise(torch.full_like(like, v)) for v in (0.0, 1.0)]
    patch = space.patch(case.batch)
    prefix = origin.shape[1] - to_patches(ends[0], patch).shape[1]
    low, high = (nn.functional.pad(to_patches(end, patch), (0, 0, prefix, 0)) for end in ends)
    return Box(low.minimum(high), low.maximum(high), name="pixels")


def _images(case: Case, space: Space, origin: Tensor) -> Region:
    """All that images can make of the states, and nothing else."""
    adapter = case.adapter
    if isinstance(space, Pixels):
        return _pixel_range(space, case, origin)
    if isinstance(adapter, ImageModel) and space.name == "embedding":
        embedding = PatchEmbedding.of(adapter, case.batch)
        box = _pixel_range(Pixels("pixels", adapter), case, origin)
        return PatchRange(box, embedding, origin[:, : embedding.prefix].double())
    raise ArgumentError(
        explain_error(
            "the states of this space are not made of pixels alone",
            got=f"within='pixels' with space={space.name!r} of {adapter.name}",
            expected="a model of images, and space='embedding' or 'pixels'",
            instead="within='bounds'" if space.name in ("embedding", "word") else "within=None",
        )
    )


def _bounds(case: Case, space: Space, origin: Tensor) -> Region:
    """All that any pixels, or any tokens, can make of the states."""
    adapter = case.adapter
    if isinstance(space, Stream) and space.at in ("input", "embedding"):
        if isinstance(adapter, TextModel):
            low, high = vocabulary_bounds(adapter, space, case.batch)
            return Box(low.double(), high.double(), name="bounds")
        if isinstance(adapter, ImageModel):
            embedding = PatchEmbedding.of(adapter, case.batch)
            reader, channels = adapter.reader, adapter.reader.preprocessing.channels
            shape = (1, channels, 1, 1)
            area = embedding.matrix.shape[1] // channels
            ends = [
                reader.normalise(torch.full(shape, v, dtype=torch.float64).to(origin.device))
                .flatten()
                .repeat_interleave(area)
                for v in (0.0, 1.0)
            ]
            low, high = embedding.bounds(ends[0], ends[1])
            front = origin[:, : embedding.prefix].double()  # what stands in front is held
            return Box(
                torch.cat([front, low], dim=1), torch.cat([front, high], dim=1), name="bounds"
            )
    if isinstance(space, Pixels):
        return _pixel_range(space, case, origin)
    raise ArgumentError(
        explain_error(
            "what states can be is not known here",
            got=f"within='bounds' with space={space.name!r}",
            expected="space='embedding', 'word' or 'pixels'",
            instead="within=pellucid.feasible(model, inputs, space=...)",
        )
    )


def _norm_range(case: Case, space: Space) -> Region:
    """The range of the normalisation that the embedding ends with."""
    norms: list[nn.LayerNorm] = []
    if isinstance(space, Stream) and space.at == "embedding":
        first = space.adapter.anatomy.blocks[0]
        inside = {id(m) for block in space.adapter.anatomy.blocks for m in block.modules()}
        for module in space.adapter.module.modules():
            if module is first:
                break
            if isinstance(module, nn.LayerNorm) and id(module) not in inside:
                norms.append(module)
    if not norms or norms[-1].weight is None:
        raise ArgumentError(
            explain_error(
                "the states of this space do not come out of a layer normalisation",
                got=f"within='layernorm' with space={space.name!r} of {case.adapter.name}",
                expected="a model whose embedding ends with one, as BERT's",
                instead="within='bounds'",
            )
        )
    norm = norms[-1]
    weight = norm.weight.detach().double()
    bias = torch.zeros_like(weight) if norm.bias is None else norm.bias.detach().double()
    return NormRange(weight, bias)

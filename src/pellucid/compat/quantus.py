"""Quantus and pellucid: our methods under its metrics, its metrics on our explanations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, UnsupportedCombination, explain_error
from pellucid._json import plain
from pellucid._measure import check_measurable
from pellucid._results import Explanation
from pellucid._target import Target
from pellucid._types import Picture
from pellucid.adapters.image_model import ImageModel
from pellucid.compat.attribute import attribute
from pellucid.compat.logits import LogitsModule, logits_module, torch_adapter
from pellucid.compat.randomness import seeded
from pellucid.compat.spread import spread

ExplainFunction = Callable[..., "np.ndarray[Any, Any]"]


def quantus_explain_func(
    *, method: str | Callable[..., Any] = "gradient_x_input", seed: int = 0, **params: Any
) -> ExplainFunction:
    """A method of pellucid as the `explain_func` of Quantus.

    The model that Quantus is given must be a `logits_module`; attributions are (b 1 h w), where a
    patch's score is shared evenly by its pixels. Further keywords are the method's own.
    """
    return _explaining(method, Target.predicted(), seed, params)


def _explaining(
    method: str | Callable[..., Any], goal: Target, seed: int, params: Mapping[str, Any]
) -> ExplainFunction:
    """What explains images as Quantus asks for it: the goal, for the class of each."""

    def explained(model: Any, inputs: Any, targets: Any, **_: Any) -> np.ndarray[Any, Any]:
        """Attributions of these images; what Quantus says of devices is known to the model."""
        if not isinstance(model, LogitsModule):
            raise ArgumentError(
                explain_error(
                    "a method of pellucid explains a model of pellucid",
                    got=type(model).__name__,
                    expected="a logits_module as the model that Quantus is given",
                    instead="metric(model=pellucid.compat.logits_module(model), ...)",
                )
            )
        pixels = torch.as_tensor(np.asarray(inputs))
        tool = attribute(model, method=method, **params)
        goals = [replace(goal, label=int(one)) for one in np.asarray(targets)]
        found = tool.attribute(pixels, target=goals, seed=seed)
        return found.sum(dim=1, keepdim=True).numpy()

    return explained


def quantus_call(
    metric: Any,
    model: Any,
    explanations: Explanation | Sequence[Explanation],
    *,
    seed: int = 0,
    **keywords: Any,
) -> Any:
    """What a metric of Quantus says of explanations of images: the scores of each, as it has them.

    `metric` is a configured object, such as ``quantus.Sparseness()``. Where it explains changed
    images, the method, parameters and seed are those of the explanations, which must then have
    them in common. What it draws follows from `seed`; `keywords` go to its call (`s_batch`,
    `channel_first`, ...).
    """
    seed = integer("seed", seed, 0)
    found = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    adapter = torch_adapter(model)
    _check_images(adapter, found)
    for one in found:
        check_measurable(one, adapter)
    batch = adapter.batch([one.item for one in found], Target.predicted())
    pixels = batch.inputs[cast(ImageModel, adapter).reader.argument]
    known = {
        "model": logits_module(adapter),
        "x_batch": pixels.cpu().numpy(),
        "y_batch": np.array([_class(one) for one in found]),
        "a_batch": np.concatenate([_shared(one) for one in found]),
        "explain_func": _again(found),
        "device": str(adapter.device),
    }
    with seeded(seed, adapter.device):
        return metric(**(known | keywords))


def _shared(explanation: Explanation) -> np.ndarray[Any, Any]:
    """The scores over the pixels (1 1 h w), as `quantus_explain_func` gives them."""
    picture = cast(Picture, explanation.item)
    return spread(explanation.scores[None], [picture], 1).numpy()


def _again(explanations: Sequence[Explanation]) -> ExplainFunction | None:
    """What explains other images as these were explained; None where they differ in that."""

    def how(one: Explanation) -> Any:
        return one.method, plain(one.params), one.provenance.seed, replace(_goal(one), label=None)

    first = explanations[0]
    if any(how(one) != how(first) for one in explanations):
        return None
    return _explaining(first.method, _goal(first), first.provenance.seed, first.params)


def _goal(explanation: Explanation) -> Target:
    assert explanation.target is not None  # it is about a class, which `_class` has seen to
    return explanation.target


def _class(explanation: Explanation) -> int:
    if explanation.index is None:
        raise ArgumentError(
            explain_error(
                "this explanation is not about a class",
                got=f"an explanation of the {explanation.explains}",
                expected="an explanation of a class",
                instead="pellucid.explain(model, image, target=0)",
            )
        )
    return explanation.index


def _check_images(adapter: Any, explanations: Sequence[Any]) -> None:
    if not explanations:
        raise ArgumentError(
            explain_error(
                "there is nothing to measure",
                got="no explanations",
                expected="what pellucid.explain returned",
                instead="quantus_call(metric, model, pellucid.explain(model, images))",
            )
        )
    if adapter.kind != "image":
        raise UnsupportedCombination(
            explain_error(
                "Quantus measures explanations of images",
                got=f"{adapter.name}, which reads {adapter.kind}s",
                expected="a model that reads images",
                instead="pellucid.measure(model, explanations, metric='text_deletion')",
            )
        )

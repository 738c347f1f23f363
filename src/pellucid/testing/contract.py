"""The promises that every method, metric and adapter makes, as checks that raise AssertionError.

`check_method(method, build)` and its siblings take a function that builds a fresh adapter of a
given dtype, so that third parties can hold their own methods and models to the same promises:

    from pellucid.testing import check_method, tiny
    check_method(my_method, lambda dtype: tiny.build("bert", dtype=dtype))
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import UnsupportedCombination
from pellucid._explain import explain
from pellucid._measure import measure
from pellucid._needs import Needs
from pellucid._results import Explanation
from pellucid._spec import Method, Metric, as_method
from pellucid._target import Target
from pellucid._words import spaced_words
from pellucid.adapters import TorchAdapter
from pellucid.adapters.base import Adapter
from pellucid.methods import METHODS
from pellucid.testing.tiny import sample_inputs

Build = Callable[[torch.dtype], TorchAdapter]


# ---- methods -------------------------------------------------------------------------------------


def check_method(method: str | Method | Callable[..., Any], build: Build, **params: Any) -> None:
    """Hold a method to its promises on one model, or to the designed error where it cannot run."""
    spec, _ = as_method(method, METHODS)
    params = {**spec.quick, **params}
    adapter = build(torch.float64)
    inputs = sample_inputs(adapter)
    if spec.kinds.count(adapter.kind) == 0 or spec.needs & ~adapter.offers:
        check_refusal(lambda: explain(adapter, inputs[0], method=spec, **params), adapter, spec)
        return

    def run(what: Any, model: TorchAdapter = adapter, **options: Any) -> Any:
        return explain(model, what, method=spec, **params, **options)

    batch: list[Explanation] = run(inputs)
    for one, raw in zip(batch, inputs, strict=True):
        check_explanation(one, adapter)
        assert_same(one, run(raw), 1e-8, "an input alone and in a batch")
    for one, again in zip(batch, run(inputs), strict=True):
        assert torch.equal(one.scores, again.scores), "two runs with one seed differ"
    for one, turned in zip(batch, run(inputs[::-1], batch_size=2)[::-1], strict=True):
        assert_same(one, turned, 1e-8, "another order and batch size")
    single = build(torch.float32)
    for one, raw in zip(batch, inputs, strict=True):
        assert_same(one, run(raw, single, target=one.index), 5e-3, "float32 and float64")
    check_declared(spec, adapter, inputs, params)
    check_no_trace(adapter, lambda: run(inputs))


def quick(name: str) -> partial[Any]:
    """A method of the table with the parameters that make it cheap."""
    return partial(METHODS[name], **METHODS[name].quick)


def check_explanation(explanation: Explanation, adapter: Adapter) -> None:
    """Shapes, finiteness and bookkeeping of one explanation."""
    scores = explanation.scores
    assert torch.isfinite(scores).all(), "scores are not finite"
    tokens = len(explanation.segments)
    allowed: set[tuple[int, ...]] = {(tokens,)}
    if explanation.kind == "image":
        height, width = explanation.map().shape
        allowed.add((height, width))
    assert tuple(scores.shape) in allowed, f"scores of shape {tuple(scores.shape)}"
    assert explanation.signed or (scores >= 0).all(), "an unsigned method gave negative scores"
    assert explanation.provenance.forwards >= 1
    assert explanation.provenance.weights == adapter.weights_hash()


def check_declared(
    spec: Method, adapter: Adapter, inputs: Sequence[Any], params: dict[str, Any]
) -> None:
    """What a method declares to need is what it uses, and padding gets nothing of its own."""
    target = Target.predicted(spec.explains)
    items = [adapter.read(one, target) for one in inputs]
    size = adapter.largest_batch or len(items)
    case = Case(adapter, adapter.batch(items[:size], target), target, spec=spec)
    found = spec(case, **params)
    if spec.declared:
        assert case.used == spec.needs, f"declared {spec.needs}, used {case.used}"
    scores = getattr(found, "scores", found)
    if scores.dim() == 2:
        assert (scores.masked_fill(case.mask, 0) == 0).all(), "padding got a score"


# ---- metrics -------------------------------------------------------------------------------------


def check_metric(metric: str | Metric, build: Build, **params: Any) -> None:
    """Hold a metric to its promises on one model, or to the designed error where it cannot run."""
    from pellucid.metrics import METRICS

    spec = METRICS[metric] if isinstance(metric, str) else metric
    params = {**spec.quick, **params}
    adapter = build(torch.float64)
    inputs = sample_inputs(adapter)
    quantity = None if spec.reads == "explained" else spec.reads
    explained = explain(adapter, inputs, method="random", target=Target.predicted(quantity))
    if spec.kinds.count(adapter.kind) == 0 or spec.needs & ~adapter.offers:
        check_refusal(lambda: measure(adapter, explained, metric=spec, **params), adapter, spec)
        return

    truths = None if spec.truth is None else _truths(spec, explained)

    def numbers(found: Sequence[Any]) -> list[float]:
        return [np.nan if one.value is None else one.value for one in found]

    def run(what: Any, truth: Any = truths, **options: Any) -> Any:
        return measure(adapter, what, metric=spec, truth=truth, **params, **options)

    found = run(explained)
    values = numbers(found)
    assert np.isfinite(values).any(), "every input was skipped"
    singles = zip(explained, truths or [None] * len(explained), strict=True)
    np.testing.assert_allclose(numbers([run(*one) for one in singles]), values, atol=1e-8)
    turned = run(explained[::-1], truths and truths[::-1], batch_size=2)[::-1]
    np.testing.assert_allclose(numbers(turned), values, atol=1e-8)
    if not spec.absolute:
        doubled = [replace(one, scores=one.scores * 2) for one in explained]
        np.testing.assert_allclose(numbers(run(doubled)), values, atol=1e-8)
    check_no_trace(adapter, lambda: run(explained), any(one.evaluations for one in found))


def _truths(spec: Metric, explained: Sequence[Explanation]) -> list[Any]:
    """A small object in every image, the class that was explained, or a text's first words."""
    if spec.truth == "label":
        return [one.index for one in explained]
    if spec.truth in ("rationale", "attention"):
        words = [len(spaced_words(one.item.parts[0])) for one in explained]  # type: ignore[union-attr]
        return [[float(i < many / 2) for i in range(many)] for many in words]
    mask = np.zeros((16, 16), dtype=np.int8)
    mask[4:10, 5:9] = 1
    mask[10:12] = -1
    return [mask, mask.T, mask[::-1]][: len(explained)]


def check_refusal(work: Callable[[], Any], adapter: Adapter, spec: Method | Metric) -> None:
    """A model that does not offer what is needed gets the one designed error."""
    try:
        work()
    except UnsupportedCombination as error:
        message = str(error)
        assert spec.name in message, "the error does not name what was asked for"
        assert adapter.name in message, "the error does not name the model"
        assert "missing:" in message, "the error does not say what is missing"
        return
    raise AssertionError(f"{spec.name} ran on {adapter.name}, which does not offer {spec.needs}")


# ---- adapters ------------------------------------------------------------------------------------


def check_adapter(build: Build) -> None:
    """Hold an adapter to its promises: it watches and intervenes without changing anything."""
    fresh = build(torch.float64)
    before = fingerprint(fresh)
    assert fresh.offers, "the model offers nothing"
    assert_unchanged(before, fingerprint(fresh), "by the dry run")
    adapter = build(torch.float64)
    target = Target.predicted()
    batch = adapter.encode(sample_inputs(adapter)[: adapter.largest_batch], target)
    with torch.no_grad():
        plain = adapter.rows(adapter.output(batch), batch)
    _check_places(adapter, batch, plain)
    _check_recording(adapter, batch, plain)
    _check_projection(adapter, batch)
    _check_dropping(adapter, batch, plain)
    case = Case(adapter, batch, target)
    if Needs.STREAM in adapter.offers:
        _check_jacobian(case)
    check_no_trace(adapter, lambda: case.record(adapter.offers & _INSIDE, gradients=True))


_RECORDABLE = Needs.ATTENTION | Needs.VALUES | Needs.STREAM | Needs.BRANCHES
_INSIDE = _RECORDABLE | Needs.PROJECTION  # which only a recording with gradients knows


def _check_places(adapter: TorchAdapter, batch: Any, plain: Tensor) -> None:
    """Putting back what was read changes nothing (but torch's fused encoder, which steps aside)."""
    places = ["input"] * (Needs.GRADIENTS in adapter.offers)
    if Needs.STREAM in adapter.offers:
        places += ["embedding", *(f"hidden:{i}" for i in range(len(adapter.anatomy.blocks) + 1))]
    for at in places:
        with torch.no_grad():
            output = adapter.output_from(batch, at, adapter.value_at(batch, at))
        again = adapter.rows(output, batch)
        np.testing.assert_allclose(again, plain, rtol=1e-12, atol=1e-12, err_msg=at)


def _check_recording(adapter: TorchAdapter, batch: Any, plain: Tensor) -> None:
    """Recording agrees with the model as it is; maps are stochastic and see no padding."""
    what = adapter.offers & _RECORDABLE
    recording = adapter.record(batch, what, differentiable=False)
    output, layers = recording.output, recording.layers
    np.testing.assert_allclose(adapter.rows(output, batch).detach(), plain, atol=1e-7, rtol=1e-6)
    for maps in layers.get("attention", []):
        real = batch.mask[:, None, :].expand(maps.shape[:3])
        sums = maps.sum(dim=-1)[real]
        np.testing.assert_allclose(sums.detach(), 1.0, atol=1e-6)
        seen = maps.masked_fill(batch.mask[:, None, None, :], 0.0)
        assert (seen[real] == 0).all(), "padding was attended to"
    if "attention_branch" in layers and adapter.anatomy.pre_norm:
        stream = layers["stream"]
        for i, (a, m) in enumerate(
            zip(layers["attention_branch"], layers["mlp_branch"], strict=True)
        ):
            np.testing.assert_allclose(
                (stream[i] + a + m).detach(), stream[i + 1].detach(), atol=1e-9
            )


def _check_projection(adapter: TorchAdapter, batch: Any) -> None:
    """What the heads read, projected and summed, is the attention branch but for one bias."""
    what = adapter.offers & _INSIDE
    if Needs.PROJECTION not in what:
        return
    layers = adapter.record(batch, what, differentiable=True).layers
    seen = zip(
        layers["attention"],
        layers["values"],
        layers["projection"],
        layers["attention_branch"],
        strict=True,
    )
    for maps, values, projection, branch in seen:
        heads = torch.einsum("bhts,bhsc,hcd->btd", maps, values, projection)
        bias = (branch - heads)[batch.mask]  # the same for every token
        np.testing.assert_allclose(bias.detach(), bias[:1].expand_as(bias).detach(), atol=1e-6)


def _check_dropping(adapter: TorchAdapter, batch: Any, plain: Tensor) -> None:
    """Keeping everything changes nothing; a dropped token is really gone."""
    if Needs.TOKEN_DROP not in adapter.offers:
        return
    with torch.no_grad():
        kept = adapter.keep(batch, batch.mask)
        np.testing.assert_allclose(adapter.rows(adapter.output(kept), kept), plain, atol=1e-9)
        stays = batch.mask.clone()
        for row, content in zip(stays, batch.content, strict=True):
            row[content.nonzero()[0]] = False
        fewer = adapter.keep(batch, stays)
    assert all(
        len(short.segments) == len(long.segments) - 1
        for short, long in zip(fewer.items, batch.items, strict=True)
    )


def _check_jacobian(case: Case) -> None:
    """<u, J v> = <J^T u, v>, and the rows agree with both.

    To 1e-5 only, because several families compute norms and positions in float32 in any dtype.
    """
    jacobian = case.jacobian()
    generator = torch.Generator().manual_seed(0)
    v = torch.randn(jacobian.x.shape, generator=generator, dtype=jacobian.x.dtype)
    u = torch.randn(jacobian.y.shape, generator=generator, dtype=jacobian.x.dtype)
    forward, reverse = jacobian.jvp(v), jacobian.vjp(u)
    scale = float(forward.detach().abs().max())
    left, right = (u * forward).sum(dim=1), (reverse * v).flatten(1).sum(dim=1)
    np.testing.assert_allclose(left.detach(), right.detach(), rtol=1e-5, atol=1e-5 * scale)
    rows = torch.einsum("bqtd,btd->bq", jacobian.rows(), v)
    np.testing.assert_allclose(rows.detach(), forward.detach(), rtol=1e-5, atol=1e-5 * scale)


# ---- leaving no trace ----------------------------------------------------------------------------


def check_no_trace(adapter: TorchAdapter, work: Callable[[], Any], runs: bool = True) -> None:
    """Model, random state and process are the same after success, and after an error in a block.

    `runs`: whether the work runs the model at all, which is where the error is planted.
    """
    blocks = adapter.anatomy.blocks or (adapter.module,)
    before = fingerprint(adapter)
    work()
    assert_unchanged(before, fingerprint(adapter), "by success")
    if not runs:
        return
    with _failing(blocks[-1]):
        try:
            work()
        except _PlantedError:
            came_through = True
        else:
            came_through = False
    assert came_through, "an error raised inside a block was swallowed"
    assert_unchanged(before, fingerprint(adapter), "by an error raised inside a block")


class _PlantedError(Exception):
    """Raised inside a block on purpose."""


@contextmanager
def _failing(module: torch.nn.Module) -> Iterator[None]:
    def fail(*_: Any) -> None:
        raise _PlantedError

    handle = module.register_forward_hook(fail)
    try:
        yield
    finally:
        handle.remove()


def fingerprint(adapter: TorchAdapter) -> dict[str, str]:
    """Everything about a model and the process that an explanation must leave as it was."""
    module = adapter.module
    modules = list(module.named_modules())
    parameters = list(module.named_parameters())
    config = getattr(module, "config", None)
    return {
        "weights": _digest(
            *(t.detach().cpu().numpy().tobytes() for t in module.state_dict().values())
        ),
        "hooks": repr([(n, len(m._forward_hooks), len(m._forward_pre_hooks)) for n, m in modules]),
        "modes": repr([m.training for _, m in modules]),
        "requires_grad": repr([p.requires_grad for _, p in parameters]),
        "gradients": repr([n for n, p in parameters if p.grad is not None]),
        "config": json.dumps(config.to_dict(), default=str, sort_keys=True) if config else "",
        "attention": str(getattr(config, "_attn_implementation", "")),
        "torch generator": _digest(torch.get_rng_state().numpy().tobytes()),
        "numpy generator": _digest(np.random.get_state()[1].tobytes()),  # type: ignore[index]
        "python generator": _digest(repr(random.getstate()).encode()),
        "gradient mode": str(torch.is_grad_enabled()),
        "default dtype": str(torch.get_default_dtype()),
        "environment": _digest(repr(sorted(os.environ.items())).encode()),
        "function modes": str(torch._C._len_torch_function_stack()),
    }


def assert_unchanged(before: dict[str, str], after: dict[str, str], when: str) -> None:
    """Two fingerprints are equal."""
    changed = [name for name in before if before[name] != after[name]]
    assert not changed, f"{', '.join(changed)}: changed {when}"


def assert_same(one: Explanation, other: Explanation, tolerance: float, what: str) -> None:
    """Two explanations agree, relative to the largest score."""
    assert one.scores.shape == other.scores.shape, f"shapes differ between {what}"
    scale = one.scores.abs().max().clamp(min=1e-12)
    gap = float((one.scores - other.scores).abs().max() / scale)
    assert gap <= tolerance, f"scores differ by {gap:.1e} between {what}"


def _digest(*parts: bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()

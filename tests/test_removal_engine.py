"""Removing parts of inputs: batches of a number of tokens, memory, time, the one footing."""

from __future__ import annotations

import re

import pytest
import torch

import pellucid
from pellucid import ArgumentError, BudgetExceeded, Target
from pellucid._batches import in_pieces
from pellucid._case import Case
from pellucid._kept import score_kept
from pellucid._meter import Meter
from pellucid._perturb import _batches, in_time
from pellucid.testing.tiny import build, byte_bpe, sample_inputs


def case_of(model, raw=None, target=None, **options):
    target = target or Target.logit(0)
    return Case(model, model.encode(raw or sample_inputs(model), target), target, **options)


def sets_of(case, count, seed=0):
    """Random sets of tokens, of many sizes (b m t)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(case.batch), count, case.mask.shape[1])
    sizes = torch.rand(shape[:2], generator=generator)[..., None]
    return torch.rand(shape, generator=generator) < sizes


@pytest.fixture
def shapes():
    """Watch a model: `shapes(model)` is a list that fills with the shapes of what it reads."""
    handles = []

    def watch(model, most=10**9):
        seen = []

        def see(module, args, kwargs):
            seen.append(tuple(kwargs["input_ids"].shape))
            if kwargs["input_ids"].numel() > most:
                raise torch.OutOfMemoryError("no memory left")

        handles.append(model.module.register_forward_pre_hook(see, with_kwargs=True))
        return seen

    yield watch
    for handle in handles:
        handle.remove()


# ---- batches -------------------------------------------------------------------------------------


def test_a_batch_has_room_for_a_number_of_tokens():
    assert _batches([3, 1, 2, 2, 6], 6, None, equal=False) == [[1, 2, 3], [0], [4]]
    assert _batches([3, 1, 2, 2, 6], 6, None, equal=True) == [[1], [2, 3], [0], [4]]
    assert _batches([1] * 5, 4, 2, equal=False) == [[0, 1], [2, 3], [4]]
    assert _batches([9, 9], 4, None, equal=False) == [[0], [1]]  # one fits in any case
    assert _batches([], 4, None, equal=False) == []


def test_short_versions_go_through_more_at_a_time(shapes):
    model = build("bert")
    assert model.offers  # examined before it is watched
    case = case_of(model, batch_size=4)
    _ = case.value
    room = 4 * case.mask.shape[1]
    seen = shapes(model)
    case.drop(sets_of(case, 40))
    assert all(count * length <= room for count, length in seen)
    assert max(count for count, _ in seen) > 4
    assert sum(count for count, _ in seen) == int(case.meter.forwards.sum()) - len(case.batch)
    lengths = [length for _, length in seen]
    assert lengths == sorted(lengths)


def test_a_function_never_gets_more_than_it_was_promised():
    asked = []

    def function(texts):
        asked.append(len(texts))
        return [[0.0, float(len(text))] for text in texts]

    box = pellucid.blackbox(function, kind="text", labels=["a", "b"], gives="logits")
    text = "one two three four five six seven eight nine ten"
    pellucid.explain(box, text, method="lime", samples=200, batch_size=5)
    assert max(asked) == 5


def test_a_model_without_padding_gets_one_at_a_time(shapes):
    from transformers import GPT2Config, GPT2ForSequenceClassification

    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "vocab_size": 300}
    config = GPT2Config(**sizes, bos_token_id=1, eos_token_id=1)
    module = GPT2ForSequenceClassification(config).eval()
    model = pellucid.adapt(module, byte_bpe(pad=False))
    assert model.offers
    seen = shapes(model)
    pellucid.explain(model, ["the film", "a great film"], method="kernel_shap")
    assert {count for count, _ in seen} == {1}


@pytest.mark.parametrize("method", ["lime", "kernel_shap"])
@pytest.mark.parametrize("family", ["bert", "gpt2", "vit", "swin"])
def test_batches_do_not_matter_and_runs_are_equal_bit_by_bit(method, family):
    model = build(family, dtype=torch.float64)
    params = {"method": method, "samples": 150, "cells": 4}
    inputs = sample_inputs(model)
    first = pellucid.explain(model, inputs, **params)
    for one, again in zip(first, pellucid.explain(model, inputs, **params), strict=True):
        assert torch.equal(one.scores, again.scores)
        assert all(torch.equal(one.extras[name], again.extras[name]) for name in one.extras)
    for one, other in zip(
        first, pellucid.explain(model, inputs, batch_size=3, **params), strict=True
    ):
        torch.testing.assert_close(one.scores, other.scores, rtol=1e-8, atol=1e-8)
    for one, raw in zip(first, inputs, strict=True):
        alone = pellucid.explain(model, raw, **params)
        torch.testing.assert_close(one.scores, alone.scores, rtol=1e-8, atol=1e-8)


# ---- memory --------------------------------------------------------------------------------------


def test_what_did_not_fit_is_not_tried_again_though_it_is_fewer_and_longer():
    tried = []

    def work(indices):
        tried.append(indices)
        if len(indices) * (4 if 9 in indices else 1) > 4:
            raise MemoryError
        return sum(indices)

    found = list(
        in_pieces([[1, 2, 3, 4, 5, 6], [8, 9]], work, lambda some: 8 if 9 in some else len(some))
    )
    assert [indices for indices, _ in found] == [[1, 2, 3], [4, 5, 6], [8], [9]]
    assert tried == [[1, 2, 3, 4, 5, 6], [1, 2, 3], [4, 5, 6], [8], [9]]


def test_versions_that_do_not_fit_are_halved(shapes):
    model = build("bert", dtype=torch.float64)
    expected = case_of(model).drop(sets_of(case_of(model), 30))
    case = case_of(model, batch_size=16)
    _ = case.value
    seen = shapes(model, most=100)
    found = case.drop(sets_of(case, 30))
    torch.testing.assert_close(found, expected)
    failed = [count * length for count, length in seen if count * length > 100]
    assert failed == sorted(failed, reverse=True)  # nothing as large as what did not fit
    assert len(failed) < 4


# ---- time ----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """A clock that each forward pass of a watched function moves on by one second."""

    class Clock:
        now = 0.0

        def perf_counter(self):
            return self.now

    found = Clock()
    monkeypatch.setattr("pellucid._meter.time", found)
    return found


def slow_box(clock):
    def function(texts):
        clock.now += len(texts)
        return [[0.0, float(sum(map(ord, text)) % 97)] for text in texts]

    return pellucid.blackbox(function, kind="text", labels=["a", "b"], gives="logits")


TEXT = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"


@pytest.mark.parametrize(
    ("method", "params"),
    [("lime", {}), ("kernel_shap", {}), ("kernel_shap", {"samples": 2**14})],
)
def test_methods_that_sample_use_what_they_had_time_for(clock, method, params):
    found, again = (
        pellucid.explain(slow_box(clock), TEXT, method=method, seconds=300, **params)
        for _ in range(2)
    )
    assert 128 <= found.provenance.forwards <= 310
    assert re.search("the time was up after [0-9]+ of", found.notes[-1])
    assert torch.equal(found.scores, again.scores)


def test_tis_uses_the_sets_that_it_had_time_for(clock):
    model = build("bert", dtype=torch.float64)
    assert model.offers  # examined before the clock runs

    def tick(module, args, kwargs):
        clock.now += len(kwargs["input_ids"])

    model.module.register_forward_pre_hook(tick, with_kwargs=True)
    text, ratios = sample_inputs(model)[2], (0.3, 0.4, 0.5, 0.6, 0.7)
    found = pellucid.explain(model, text, method="tis", ratio=ratios, seconds=70)
    assert 65 <= found.provenance.forwards <= 130
    assert any(re.search("the time was up after [0-9]+ of", note) for note in found.notes)


@pytest.mark.parametrize(
    ("method", "params"), [("rise", {"masks": 500, "keep": 0.5}), ("smoothgrad", {"samples": 500})]
)
def test_means_are_over_what_there_was_time_for(clock, method, params):
    model = build("vit", dtype=torch.float64)
    images = sample_inputs(model)[:2]
    assert model.offers
    handle = model.module.register_forward_pre_hook(
        lambda module, args, kwargs: setattr(clock, "now", clock.now + len(kwargs["pixel_values"])),
        with_kwargs=True,
    )
    found = pellucid.explain(model, images, method=method, seconds=50, **params)
    handle.remove()
    for one, raw in zip(found, images, strict=True):
        (note,) = (note for note in one.notes if "the time was up" in note)
        done = int(re.search("after ([0-9]+) of 500", note)[1])
        assert 40 <= done <= 60
        if method == "smoothgrad":  # whose noise does not depend on how many there are
            assert one.provenance.backwards == done
            fewer = pellucid.explain(model, raw, method=method, samples=done)
            torch.testing.assert_close(one.scores, fewer.scores, rtol=1e-8, atol=1e-8)


def test_enough_time_changes_nothing(clock):
    plain = pellucid.explain(slow_box(clock), TEXT, method="kernel_shap")
    timed = pellucid.explain(slow_box(clock), TEXT, method="kernel_shap", seconds=10**6)
    torch.testing.assert_close(plain.scores, timed.scores, rtol=1e-10, atol=1e-10)
    assert timed.notes == ()


def test_values_of_an_interrupted_enumeration_are_near_the_exact_ones(clock):
    exact = pellucid.explain(slow_box(clock), TEXT, method="kernel_shap", samples=2**14)
    part = pellucid.explain(
        slow_box(clock), TEXT, method="kernel_shap", samples=2**14, seconds=6000
    )
    away = (part.scores - exact.scores) / part.extras["standard_error"]
    assert 0.3 < away.square().mean() < 3


def test_inputs_that_are_explained_together_share_their_time(clock):
    both = pellucid.explain(slow_box(clock), [TEXT, TEXT], method="lime", seconds=300)
    assert sum(one.provenance.forwards for one in both) > 320


@pytest.mark.parametrize("method", ["occlusion", "lime"])
def test_others_say_that_the_time_is_up(clock, method):
    with pytest.raises(BudgetExceeded, match="seconds=3,") as caught:
        pellucid.explain(slow_box(clock), TEXT, method=method, seconds=3)
    assert "seconds=12" in str(caught.value)


@pytest.mark.parametrize("seconds", [0, -1.0, "long", float("nan")])
def test_times_that_cannot_be(seconds):
    with pytest.raises(ArgumentError, match="seconds"):
        pellucid.explain(build("bert"), "the film", seconds=seconds)


def test_a_budget_of_evaluations_is_a_promise_that_is_not_bent():
    model = build("bert")
    with pytest.raises(BudgetExceeded, match="budget=20"):
        pellucid.explain(model, sample_inputs(model)[1], method="lime", samples=200, budget=20)
    case = case_of(model, meter=Meter(3, budget=3, seconds=1000.0))
    with pytest.raises(BudgetExceeded, match="budget=3"):
        in_time(case, sets_of(case, 200), lambda some: score_kept(case, some))


# ---- one footing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family", ["bert", "roberta", "distilbert", "gpt2", "gpt2-lm", "llama", "llama-lm", "qwen3-lm"]
)
@pytest.mark.parametrize("method", ["occlusion", "lime", "kernel_shap"])
def test_one_token_is_enough(family, method):
    """A text of one token, of which nothing is left."""
    model = build(family, dtype=torch.float64)
    found = pellucid.explain(model, "a", method=method)
    case = case_of(model, ["a"], Target(found.index, found.target.quantity))
    gone = float(case.value - case.drop(torch.zeros_like(case.mask)))
    if method != "lime":
        assert float(found.scores.sum()) == pytest.approx(gone, abs=1e-9)
    assert torch.isfinite(found.scores).all()


@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "llama-lm", "qwen2"])
def test_sets_of_tis_keep_the_models_own_tokens(family):
    model = build(family, dtype=torch.float64)
    text = sample_inputs(model)[1]
    kept = []

    def see(module, args, kwargs):
        kept.extend(row.tolist() for row in kwargs["input_ids"])

    handle = model.module.register_forward_pre_hook(see, with_kwargs=True)
    pellucid.explain(model, text, method="tis", masks=8)
    handle.remove()
    case = case_of(model, [text])
    own = case.batch.inputs["input_ids"][0][~case.content[0]].tolist()
    assert all(row.count(token) >= own.count(token) for row in kept for token in own)


def test_the_gap_of_integrated_gradients_is_reported():
    for family in ("bert", "gpt2-lm", "llama"):
        model = build(family, dtype=torch.float64)
        for found in pellucid.explain(
            model, sample_inputs(model), method="integrated_gradients", steps=3
        ):
            assert found.extras["completeness_gap"].shape == ()

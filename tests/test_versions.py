"""Changed versions of inputs: dropped tokens, other pixels, gradients; batches, memory, budget."""

from __future__ import annotations

import gc
from itertools import pairwise

import pytest
import torch

import pellucid
from pellucid import ArgumentError, BudgetExceeded, Target
from pellucid._case import Case
from pellucid._meter import Meter
from pellucid._perturb import gradients, noise, score_pixels
from pellucid.record.attention import AttentionWatch
from pellucid.testing.tiny import build, sample_inputs

DROPPING = ["vit", "deit-distilled", "dinov2-registers", "clip-vision", "timm-like", "plain-image"]


def case_of(model, raw=None, target=None, **options):
    target = target or Target.logit(0)
    return Case(model, model.encode(raw or sample_inputs(model), target), target, **options)


def sets_of(case, count, seed=0):
    """Random sets of tokens, of many sizes (b m t)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (len(case.batch), count, case.mask.shape[1])
    sizes = torch.rand(shape[:2], generator=generator)[..., None]
    return torch.rand(shape, generator=generator) < sizes


class Watched:
    """The sizes of the batches that a model gets."""

    def __init__(self, model, most=10**6):
        self.sizes, self._most = [], most
        self._handle = model.module.register_forward_pre_hook(self._see, with_kwargs=True)

    def _see(self, module, args, kwargs):
        found = next(x for x in [*args, *kwargs.values()] if isinstance(x, torch.Tensor))
        self.sizes.append(len(found))
        if len(found) > self._most:
            raise torch.OutOfMemoryError("no memory left")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._handle.remove()


# ---- dropped tokens ------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*DROPPING, "bert", "gpt2", "llama-lm", "bert-mlm"])
def test_keeping_everything_changes_nothing(family):
    case = case_of(build(family, dtype=torch.float64))
    everything = torch.ones(len(case.batch), 2, case.mask.shape[1], dtype=torch.bool)
    found = case.drop(everything)
    torch.testing.assert_close(found, case.value[:, None].expand(-1, 2), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("family", DROPPING)
def test_dropping_a_patch_is_hiding_it_from_attention(family):
    model = build(family, dtype=torch.float64)
    case = case_of(model)
    keep = sets_of(case, 6)
    keep[..., -1] = True
    found = case.drop(keep)
    for number in range(keep.shape[1]):
        stays = keep[:, number] | ~case.content
        if model.anatomy.readout.patches:
            continue  # a mean over patches also reads those that are hidden
        with torch.no_grad(), AttentionWatch(blocked=~stays):
            output = model.output(case.batch)
        expected = case.objective.of_rows(model.rows(output, case.batch))
        torch.testing.assert_close(found[:, number], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", [*DROPPING, "bert", "gpt2"])
def test_many_sets_are_each_set_by_itself(family):
    model = build(family, dtype=torch.float64)
    case = case_of(model, batch_size=4)
    keep = sets_of(case, 9)
    keep[..., [1, -1]] = True  # something stays
    found = case.drop(keep)
    for row, raw in enumerate(sample_inputs(model)):
        alone = case_of(model, [raw])
        length = alone.mask.shape[1]
        for number in range(9):
            expected = alone.drop(keep[row : row + 1, number, :length])
            torch.testing.assert_close(found[row, number], expected[0], rtol=1e-9, atol=1e-9)


def test_the_patches_are_embedded_once():
    model = build("vit")
    case = case_of(model, batch_size=8)
    seen = []
    model.anatomy.patchify.register_forward_pre_hook(lambda m, args: seen.append(len(args[0])))
    keep = torch.zeros(3, 8, case.mask.shape[1], dtype=torch.bool)
    for number in range(8):
        keep[:, number, 1 + number : 13 + number] = True
    case.drop(keep)
    assert seen == [3, 3, 1, 1]  # for the class, for the stream, then 24 sets of half the tokens


def test_sets_that_are_equal_run_once():
    model = build("bert")
    case = case_of(model)
    keep = torch.ones(3, 3, case.mask.shape[1], dtype=torch.bool)
    keep[:, 1, 1] = keep[:, 2, 2] = False
    found = case.drop(keep[:, [0, 1, 0, 2, 2, 0]])
    assert case.meter.forwards.tolist() == [4, 4, 4]  # one for the class, three for the sets
    assert torch.equal(found[:, 0], found[:, 2])
    torch.testing.assert_close(found, case_of(model).drop(keep)[:, [0, 1, 0, 2, 2, 0]])


@pytest.mark.parametrize("by", ["mask", "unk", "pad"])
def test_tokens_of_a_text_can_be_replaced(by):
    model = build("bert", dtype=torch.float64)
    case = case_of(model)
    keep = sets_of(case, 4)
    found = case.drop(keep, by)
    token = getattr(model.reader.tokenizer, f"{by}_token_id")
    for row, raw in enumerate(sample_inputs(model)):
        encoded = model.reader.tokenizer(raw, return_tensors="pt")
        for number in range(4):
            ids = encoded["input_ids"].clone()
            for place in range(1, ids.shape[1] - 1):  # but for [CLS] and [SEP]
                if not keep[row, number, place]:
                    ids[0, place] = token
            with torch.no_grad():
                logits = model.module(ids, attention_mask=torch.ones_like(ids)).logits
            torch.testing.assert_close(found[row, number], logits[0, 0], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("family", "word"), [("gpt2", "no mask token"), ("vit", "no token to")])
def test_a_token_that_is_not_there_cannot_replace_another(family, word):
    case = case_of(build(family))
    with pytest.raises(ArgumentError, match=word) as caught:
        case.drop(case.mask[:, None], "mask")
    assert "by='delete'" in str(caught.value)


# ---- batches, memory, budget, progress -----------------------------------------------------------


def test_versions_of_several_inputs_share_batches():
    model = build("vit")
    case = case_of(model, batch_size=8)
    x = case.pixels
    found = torch.zeros(3, 5, dtype=torch.float64)
    _ = case.value
    with Watched(model) as watched:
        for rows, numbers, mask, values in score_pixels(
            case, [5, 2, 4], lambda r, k: (x[r] * (k + 1)[:, None, None, None], r + k)
        ):
            found[rows, numbers] = values
            assert torch.equal(mask, rows + numbers)
    assert watched.sizes == [8, 3]
    assert case.meter.forwards.tolist() == [6, 3, 5]
    for row, number in ((0, 4), (1, 1), (2, 3)):
        batch = model.with_pixels(case.batch.take([row]), x[[row]] * (number + 1))
        expected = case.score_of(batch, torch.tensor([row]))
        torch.testing.assert_close(found[row, number], expected[0])
    assert found[1, 2:].eq(0).all()


def test_what_does_not_fit_is_halved_and_not_tried_again():
    model = build("bert", dtype=torch.float64)
    keep = sets_of(case_of(model), 8)
    keep[..., 1] = True
    expected = case_of(model).drop(keep, "mask")
    case = case_of(model, batch_size=8)
    _ = case.value
    with Watched(model, most=4) as watched:
        found = case.drop(keep, "mask")
    torch.testing.assert_close(found, expected)
    assert watched.sizes.count(8) == 1
    assert max(watched.sizes[1:]) == 4
    with Watched(model, most=0), pytest.raises(torch.OutOfMemoryError):
        case.drop(keep)


def test_a_budget_that_cannot_suffice_is_not_begun():
    model = build("bert")
    case = case_of(model, meter=Meter(3, budget=10))
    keep = sets_of(case, 40)
    keep[..., 1] = True
    with pytest.raises(BudgetExceeded, match="budget=10"):
        case.drop(keep)
    assert case.meter.forwards.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("method", "needed"),
    [("rise", 7), ("occlusion", 25), ("tis", None), ("integrated_gradients", 6), ("smoothgrad", 4)],
)
def test_what_a_method_costs_is_what_it_may_cost(method, needed):
    model = build("vit")
    image = sample_inputs(model)[0]
    params = {
        "rise": {"masks": 6},
        "integrated_gradients": {"steps": 4},
        "smoothgrad": {"samples": 3},
        "tis": {"masks": 8},
    }.get(method, {})
    found = pellucid.explain(model, image, method=method, **params)
    forwards = found.provenance.forwards
    assert forwards == needed or (method == "tis" and forwards <= 9)
    backwards = {"integrated_gradients": 4, "smoothgrad": 3}.get(method, 0)
    assert found.provenance.backwards == backwards
    pellucid.explain(model, image, method=method, budget=forwards, **params)
    with pytest.raises(BudgetExceeded):
        pellucid.explain(model, image, method=method, budget=forwards - 1, **params)


def test_memory_does_not_grow_with_the_number_of_masks():
    model = build("vit")
    image = sample_inputs(model)[0]

    assert model.offers  # examined before it is watched

    def alive(masks):
        found = []

        def look(*_):
            if len(found) < 3:
                gc.collect()
                found.append(sum(o.nbytes for o in gc.get_objects() if type(o) is torch.Tensor))

        handle = model.module.register_forward_pre_hook(look)
        pellucid.explain(model, image, method="rise", masks=masks, batch_size=16)
        handle.remove()
        return max(found)

    few, many = alive(64), alive(512)
    one_mask = 32 * 48 * 4
    assert many - few < 448 * one_mask / 10  # its cells and shift, and its number


def test_versions_are_counted_on_a_bar(capsys):
    pellucid.explain(
        build("vit"), sample_inputs(build("vit"))[0], method="rise", masks=24, progress=True
    )
    assert "evaluating" in capsys.readouterr().err


def test_the_callers_own_progress_counts_inputs():
    told = []
    model = build("vit")
    pellucid.explain(
        model,
        sample_inputs(model),
        method="rise",
        masks=24,
        batch_size=2,
        progress=lambda done, total: told.append((done, total)),
    )
    assert told == [(2, 3), (3, 3)]


# ---- noise and gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_noise_belongs_to_an_input_and_a_number(family):
    model = build(family)
    case = case_of(model)
    x = case.input()
    rows, numbers = torch.tensor([0, 2, 0, 2]), torch.tensor([1, 0, 0, 1])
    together = noise(case, rows, numbers, x)
    again = noise(case, rows.flip(0), numbers.flip(0), x).flip(0)
    assert torch.equal(together, again)
    alone = case_of(model, sample_inputs(model)[:1])
    length = alone.input().shape[1]
    single = noise(alone, rows[:1], numbers[:1], alone.input())
    assert torch.equal(together[0, :length], single[0])
    assert together[0, length:].eq(0).all()
    assert all(not torch.equal(one, other) for one, other in pairwise(together))
    other_seed = noise(case_of(model, seed=1), rows, numbers, x)
    assert not torch.equal(together, other_seed)


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_gradients_of_versions_are_gradients(family):
    model = build(family, dtype=torch.float64)
    case = case_of(model, batch_size=4)
    x = case.input()
    factors = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)

    def scaled(rows, numbers):
        return x[rows] * factors[numbers].view(-1, *[1] * (x.dim() - 1))

    for rows, numbers, found in gradients(case, 3, scaled):
        for row, number, one in zip(rows.tolist(), numbers.tolist(), found, strict=True):
            expected = case.gradient(x * factors[number])[row]
            torch.testing.assert_close(one, expected, rtol=1e-9, atol=1e-9)

"""Infidelity, completeness, random weights, ROAD and agreement, against their definitions."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

import pellucid
from pellucid import ArgumentError, InputError, Target
from pellucid._rank_statistics import (
    auroc,
    kendall,
    rank_biased_overlap,
    top_overlap,
)
from pellucid._statistics import average_ranks, spearman
from pellucid.adapters.randomised import parts_of, randomised
from pellucid.metrics._imputing import imputed
from pellucid.metrics._likeness import ssim
from pellucid.testing.contract import assert_unchanged, fingerprint
from pellucid.testing.tiny import build, sample_inputs

SIDE = 8


def linear_pictures(weights, bias=0.0):
    """A black box whose first logit is a weighted sum of the grey values, between 0 and 1."""

    def function(images):
        grey = np.stack([image[..., 0] / 255.0 for image in images])
        return np.stack([(grey * weights).sum((1, 2)) + bias, np.zeros(len(images))], axis=1)

    options = {"kind": "image", "labels": ["seen", "not"], "size": (SIDE, SIDE)}
    return pellucid.blackbox(function, gives="logits", **options)


def pictured(model, scores, picture):
    found = pellucid.explain(model, picture, method="random", target=Target.logit("seen"))
    return replace(found, scores=torch.as_tensor(scores, dtype=torch.float64))


GENERATOR = np.random.default_rng(0)
PLANE = GENERATOR.normal(size=(SIDE, SIDE))
PICTURE = GENERATOR.integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
GREY = PICTURE[..., 0] / 255.0


# ---- infidelity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [0, 3, 8])
def test_a_linear_function_of_pixels_has_faithful_shares(side):
    """What hiding a square by zeros takes is the sum of weight times value there."""
    model = linear_pictures(PLANE, 0.7)
    share = pictured(model, PLANE * GREY, PICTURE)
    found = pellucid.measure(model, share, metric="infidelity", side=side, samples=20)
    assert found.value == pytest.approx(0.0, abs=1e-20)
    assert found.evaluations == 21
    wrong = pellucid.measure(
        model, replace(share, scores=-share.scores), metric="infidelity", side=side
    )
    assert wrong.value > 0.1
    half = pellucid.measure(
        model, replace(share, scores=share.scores / 2), metric="infidelity", scale=True
    )
    assert half.value == pytest.approx(0.0, abs=1e-20)


def test_noise_is_for_gradients():
    """The gradient of a linear model predicts what any noise does; per channel, then summed."""
    weight = torch.randn(3, 3 * 32 * 48, generator=torch.Generator().manual_seed(0)).double() / 100
    plain = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(weight.shape[1], 3)).double()
    with torch.no_grad():
        plain[1].weight.copy_(weight)
    model = pellucid.adapt(
        plain.eval(), pellucid.Resize((32, 48)), labels=["a", "b", "c"], name="plain"
    )
    image = sample_inputs(build("vit"))[0]
    found = pellucid.explain(
        model, image, method="gradient", reduce="sum", target=Target.logit("b")
    )
    measured = pellucid.measure(model, found, metric="infidelity", by="noise", samples=9)
    assert measured.value == pytest.approx(0.0, abs=1e-18)
    doubled = replace(found, scores=2 * found.scores)
    assert pellucid.measure(model, doubled, metric="infidelity", by="noise").value > 1e-6


def test_infidelity_of_a_text_is_the_error_of_its_sums():
    """Zero scores are wrong by the mean squared loss, whose draws are those of any scores."""
    weights = dict(zip("abcdef", (1.0, -2.0, 0.5, 3.0, -0.2, 0.9), strict=True))

    def function(texts):
        return np.array([[sum(weights[w] for w in text.split()), 0.0] for text in texts])

    model = pellucid.blackbox(function, kind="text", labels=["x", "y"], gives="logits")
    found = pellucid.explain(model, "a b c d e f", method="random", target=Target.logit("x"))
    true = replace(found, scores=torch.tensor(list(weights.values()), dtype=torch.float64))
    zero = replace(found, scores=torch.zeros(6))
    measured = pellucid.measure(model, [true, zero], metric="infidelity", samples=50)
    assert measured[0].value == pytest.approx(0.0, abs=1e-20)
    assert measured[1].value > 1.0
    with pytest.raises(ArgumentError, match="tokens are removed"):
        pellucid.measure(model, true, metric="infidelity", by="noise")


def test_patches_share_out_their_scores_evenly():
    """A square that covers the image takes the sum of all scores, however many pixels it has."""
    model = build("vit", dtype=torch.float64)
    found = pellucid.explain(
        model, sample_inputs(model)[0], method="gradient_x_input", target=Target.logit(1)
    )
    assert found.scores.dim() == 2
    patches = pellucid.explain(
        model, sample_inputs(model)[0], method="attn_lrp", target=Target.logit(1)
    )
    assert patches.scores.dim() == 2 or patches.segments
    value = pellucid.measure(model, found, metric="infidelity", side=32, samples=2)
    assert value.value >= 0


# ---- completeness --------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bert", "vit"])
def test_integrated_gradients_claim_completeness_and_have_it(family):
    model = build(family, dtype=torch.float64)
    raw = sample_inputs(model)[0]
    found = pellucid.explain(model, raw, method="integrated_gradients", steps=200)
    gap = pellucid.measure(model, found, metric="completeness_gap")
    assert gap.value == pytest.approx(abs(float(found.extras["completeness_gap"])), abs=1e-9)
    assert gap.value < 1e-3
    moved = replace(found, scores=found.scores + 1)
    far = pellucid.measure(model, moved, metric="completeness_gap")
    signed = float(found.extras["completeness_gap"]) + found.scores.numel()
    assert far.value == pytest.approx(abs(signed), abs=1e-6)


@pytest.mark.parametrize("baseline", ["zero", "mask", "unk", "pad"])
def test_the_claimed_baseline_is_the_one_that_was_used(baseline):
    model = build("bert", dtype=torch.float64)
    settings = {"method": "integrated_gradients", "baseline": baseline, "steps": 3}
    found = pellucid.explain(model, "the film is fine", **settings)
    gap = pellucid.measure(model, found, metric="completeness_gap").value
    assert gap == pytest.approx(abs(float(found.extras["completeness_gap"])), abs=1e-10)


def test_relevance_sums_to_the_explained_number_but_for_what_is_absorbed():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, ["the film is fine", "bad"], method="attn_lrp")
    gaps = pellucid.measure(model, found, metric="completeness_gap")
    absorbed = [abs(float(one.extras["absorbed"])) for one in found]
    assert [one.value for one in gaps] == pytest.approx(absorbed)


def test_removal_of_all_tokens_as_the_baseline():
    """Scores that share out the difference evenly are complete, in the number that is explained."""
    model = build("bert", dtype=torch.float64)
    for target in (Target.logit(1), Target.probability(1)):
        found = pellucid.explain(model, "the film is fine", method="random", target=target)
        ids = torch.tensor([[found.item.rows["input_ids"][i] for i in (0, -1)]])
        with torch.no_grad():
            logits = model.module(input_ids=ids).logits
        nothing = logits[0, 1] if target.quantity == "logit" else logits.softmax(-1)[0, 1]
        even = torch.full((6,), (found.value - float(nothing)) / 6, dtype=torch.float64)
        fair = replace(found, scores=even)
        gap = pellucid.measure(model, fair, metric="completeness_gap", baseline="removed")
        assert gap.value == pytest.approx(0.0, abs=1e-12)


def test_methods_that_claim_nothing_are_skipped():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is fine", method="rollout", target=1)
    gap = pellucid.measure(model, found, metric="completeness_gap")
    assert (gap.value, gap.skipped) == (None, "it does not claim that its scores sum to anything")
    with pytest.raises(ArgumentError, match="no baseline for texts"):
        pellucid.measure(model, found, metric="completeness_gap", baseline="blur")


def test_a_baseline_that_was_drawn_is_not_known():
    model = build("vit", dtype=torch.float64)
    image = sample_inputs(model)[0]
    settings = {"method": "integrated_gradients", "baseline": "random", "steps": 2}
    found = pellucid.explain(model, image, **settings)
    gap = pellucid.measure(model, found, metric="completeness_gap")
    assert gap.skipped == "its baseline was drawn at random and is not known any more"
    with pytest.raises(ArgumentError, match="no baseline for images"):
        pellucid.measure(model, found, metric="completeness_gap", baseline="removed")


# ---- random weights ------------------------------------------------------------------------------

FAMILIES = ("bert", "gpt2", "llama-lm", "distilbert-mlm", "vit", "swin", "plain-text")


@pytest.mark.parametrize("family", FAMILIES)
def test_every_weight_belongs_to_one_part(family):
    model = build(family)
    parts = parts_of(model)
    names = [name for own in parts.values() for name in own]
    assert sorted(names) == sorted(name for name, _ in model.module.named_parameters())
    blocks = [part for part in parts if part.startswith("block")]
    assert len(blocks) == len(model.anatomy.blocks)
    assert blocks == sorted(blocks, key=lambda one: -int(one.split()[1]))
    assert next(iter(parts)) in ("head", blocks[0])
    assert list(parts)[-1] == "embedding"


@pytest.mark.parametrize("cascading", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_parts_forget_in_a_copy(family, cascading):
    """One part more at a time, or one at a time; the model keeps every bit."""
    model = build(family)
    before, digest = fingerprint(model), model.weights_hash()
    original = copy.deepcopy(model.module.state_dict())
    done: set[str] = set()
    parts = parts_of(model)
    stages = randomised(model, cascading=cascading, seed=3)
    for (part, changed), own in zip(stages, parts.values(), strict=True):
        done = done | set(own) if cascading else set(own)
        assert part in parts
        for name, weight in changed.module.named_parameters():
            same = torch.equal(weight, original[name])
            constant = len(original[name].unique()) == 1  # nothing to draw from
            assert same == (name not in done or constant), name
    assert_unchanged(before, fingerprint(model), "by random weights")
    assert model.weights_hash() == digest


def test_random_weights_are_those_of_their_seed_and_name():
    model = build("bert")
    one, other, third = (
        [next(changed.module.parameters()).clone() for _, changed in randomised(model, **how)][-1]
        for how in (
            {"cascading": True, "seed": 0},
            {"cascading": False, "seed": 0},
            {"cascading": True, "seed": 1},
        )
    )
    assert torch.equal(one, other)
    assert not torch.equal(one, third)


@pytest.mark.parametrize("order", ["cascading", "independent"])
@pytest.mark.parametrize("family", ["bert", "vit"])
def test_what_looks_at_the_weights_forgets_with_them(family, order):
    model = build(family, dtype=torch.float64)
    raw = sample_inputs(model)
    before = fingerprint(model)
    found = pellucid.explain(model, raw, method="gradient_x_input")
    measured = pellucid.measure(model, found, metric="weight_randomisation", order=order)
    assert all(len(one.curve) == 4 for one in measured)  # head, two blocks, embedding
    assert all(abs(one.value) < 0.9 for one in measured)
    assert [one.value for one in measured] == pytest.approx([np.mean(m.curve) for m in measured])
    assert_unchanged(before, fingerprint(model), "by random weights")
    fixed = pellucid.explain(model, raw, method="random")
    stays = pellucid.measure(model, fixed, metric="weight_randomisation", order=order)
    assert [one.value for one in stays] == pytest.approx([1.0] * len(raw))
    alone = pellucid.measure(model, found[1], metric="weight_randomisation", order=order)
    assert alone.curve == pytest.approx(measured[1].curve)


def test_the_first_stage_is_the_method_on_a_model_with_another_head():
    """By hand: the head of a copy is drawn anew, the input explained again, the ranks compared."""
    model = build("bert", dtype=torch.float64)
    text = "not very good , but it was fine at all"
    found = pellucid.explain(model, text, method="gradient_x_input")
    curve = pellucid.measure(model, found, metric="weight_randomisation", seed=5).curve
    part, changed = next(randomised(model, cascading=True, seed=5))
    assert part == "head"
    again = pellucid.explain(changed, text, method="gradient_x_input", target=found.index)
    own = [i for i, s in enumerate(found.segments) if s.role == "content"]
    assert curve[0] == pytest.approx(spearman(found.scores[own], again.scores[own]))


def test_a_method_of_ones_own_is_named():
    model = build("bert", dtype=torch.float64)

    def mine(case):
        return case.sum_features(case.input().abs()) * case.content

    found = pellucid.explain(model, "the film is fine", method=mine)
    with pytest.raises(ArgumentError, match="mine"):
        pellucid.measure(model, found, metric="weight_randomisation")
    measured = pellucid.measure(model, found, metric="weight_randomisation", method=mine)
    assert measured.curve[:3] == pytest.approx([1.0] * 3)  # until the embedding is drawn anew
    assert measured.curve[3] < 0.99


def test_constant_scores_have_nothing_to_forget():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is fine", method="random")
    flat = replace(found, scores=torch.ones_like(found.scores))
    measured = pellucid.measure(model, flat, metric="weight_randomisation")
    assert (measured.value, measured.skipped) == (None, "all scores are the same")


def test_structural_similarity_of_maps():
    model = build("vit", dtype=torch.float64)
    found = pellucid.explain(model, sample_inputs(model)[0], method="gradient_x_input")
    measured = pellucid.measure(model, found, metric="weight_randomisation", likeness="ssim")
    assert all(-1 <= one < 1 for one in measured.curve)


def test_tokens_have_no_structure():
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is fine", method="random")
    with pytest.raises(ArgumentError, match="likeness='ssim' for texts"):
        pellucid.measure(model, found, metric="weight_randomisation", likeness="ssim")


def test_weights_that_are_not_here_or_no_numbers():
    model = build("bert")
    packed = torch.nn.Parameter(torch.zeros(2, dtype=torch.int8), requires_grad=False)
    model.module.register_parameter("packed", packed)
    with pytest.raises(pellucid.UnsupportedCombination, match="packed in memory, in floating"):
        next(randomised(model, cascading=True, seed=0))


def test_ssim_as_the_paper_writes_it():
    """Window by window, in a loop; one of an image with itself is 1."""
    one, other = torch.rand(2, 13, 14, generator=torch.Generator().manual_seed(0)).double()
    offsets = torch.arange(11) - 5
    window = torch.exp(-(offsets[:, None] ** 2 + offsets[None] ** 2) / (2 * 1.5**2)).double()
    window = window / window.sum()
    found = []
    for i in range(3):
        for j in range(4):
            a, b = one[i : i + 11, j : j + 11], other[i : i + 11, j : j + 11]
            ma, mb = (window * a).sum(), (window * b).sum()
            va, vb = (window * (a - ma) ** 2).sum(), (window * (b - mb) ** 2).sum()
            ab = (window * (a - ma) * (b - mb)).sum()
            found.append(
                (2 * ma * mb + 1e-4) * (2 * ab + 9e-4) / ((ma**2 + mb**2 + 1e-4) * (va + vb + 9e-4))
            )
    assert ssim(one, other) == pytest.approx(float(torch.stack(found).mean()))
    assert ssim(one, one) == pytest.approx(1.0)
    assert ssim(one[:4, :4], one[:4, :4]) == pytest.approx(1.0)  # smaller than a window


# ---- ROAD ----------------------------------------------------------------------------------------


def test_imputed_pixels_solve_the_system_of_the_paper():
    """The dense matrix: each removed pixel is the weighted mean of its neighbours."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(2, 3, 6, 7, generator=generator).double()
    removed = torch.rand(2, 6, 7, generator=generator) < 0.7
    found = imputed(images, removed)
    for image, gone, got in zip(images, removed, found, strict=True):
        unknown = [tuple(p) for p in gone.nonzero().tolist()]
        matrix = torch.zeros(len(unknown), len(unknown)).double()
        right = torch.zeros(len(unknown), 3).double()
        for row, (i, j) in enumerate(unknown):
            for di in (-1, 0, 1):
                for dj in (-1, 0, 1):
                    y, x = i + di, j + dj
                    if (di, dj) == (0, 0) or not (0 <= y < 6 and 0 <= x < 7):
                        continue
                    weight = 1 / 12 if di and dj else 1 / 6
                    matrix[row, row] += weight
                    if (y, x) in unknown:
                        matrix[row, unknown.index((y, x))] -= weight
                    else:
                        right[row] += weight * image[:, y, x]
        solved = torch.linalg.solve(matrix, right)
        for value, (i, j) in zip(solved, unknown, strict=True):
            torch.testing.assert_close(got[:, i, j], value, atol=1e-6, rtol=1e-6)
        kept = ~gone
        assert torch.equal(got[:, kept], image[:, kept])


def test_imputing_a_plain_image_and_nothing_at_all():
    plain = torch.full((1, 3, 20, 20), 0.3, dtype=torch.float64)
    removed = torch.rand(1, 20, 20, generator=torch.Generator().manual_seed(0)) < 0.9
    torch.testing.assert_close(imputed(plain, removed), plain, atol=1e-6, rtol=0)
    noise = torch.rand(1, 3, 20, 20)
    assert torch.equal(imputed(noise, torch.zeros(1, 20, 20, dtype=torch.bool)), noise)


def test_each_image_of_a_batch_is_imputed_alone():
    generator = torch.Generator().manual_seed(1)
    images = torch.rand(3, 1, 16, 16, generator=generator).double()
    parts = torch.tensor([0.1, 0.5, 0.95])[:, None, None]
    removed = torch.rand(3, 16, 16, generator=generator) < parts
    together = imputed(images, removed)
    for i in range(3):
        alone = imputed(images[i : i + 1], removed[i : i + 1])
        torch.testing.assert_close(alone, together[i : i + 1], atol=1e-6, rtol=1e-6)


def test_road_of_a_detector():
    """A class that a bright square says is lost once the square is filled in from around it."""
    picture = np.zeros((SIDE, SIDE, 3), dtype=np.uint8)
    picture[2:4, 2:4] = 255
    plane = np.zeros((SIDE, SIDE))
    plane[2:4, 2:4] = 1.0
    model = linear_pictures(plane, -2.0)  # "seen" while more than half of it is bright
    levels = (5, 10, 50)  # 3, 6 and 32 of 64 pixels
    truth = torch.as_tensor(plane) + torch.linspace(0, 1e-3, 64).view(8, 8)
    best, worst = (
        pellucid.measure(
            model, pictured(model, s, picture), metric="road", truth="seen", percent=levels
        )
        for s in (truth, -truth)
    )
    assert best.curve == (0.0, 0.0, 0.0)
    assert worst.curve == (1.0, 1.0, 1.0)
    assert (best.value, best.better) == (0.0, "lower")
    assert best.evaluations == 3  # the image itself tells nothing here
    other = pellucid.measure(
        model, pictured(model, truth, picture), metric="road", truth="not", percent=levels
    )
    assert other.value == 1.0


@pytest.mark.parametrize("percent", [(), (0,), (100,), (10, 120), ("a",)])
def test_parts_that_leave_nothing(percent):
    model = linear_pictures(PLANE)
    with pytest.raises(ArgumentError):
        pellucid.measure(
            model, pictured(model, PLANE, PICTURE), metric="road", truth="seen", percent=percent
        )


# ---- orders --------------------------------------------------------------------------------------


def test_ranks_and_correlations_by_hand():
    assert average_ranks(torch.tensor([3.0, 1.0, 3.0, 7.0])).tolist() == [2.5, 1.0, 2.5, 4.0]
    one = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    swapped = torch.tensor([1.0, 3.0, 2.0, 4.0, 5.0])
    assert spearman(one, swapped) == pytest.approx(0.9)
    assert kendall(one, swapped) == pytest.approx(0.8)
    assert [spearman(one, -one), kendall(one, -one)] == pytest.approx([-1.0, -1.0])
    assert spearman(one, torch.ones(5)) is None
    assert kendall(torch.ones(5), one) is None
    assert spearman(one[:1], one[:1]) is None


def test_kendall_with_ties_is_counted_pair_by_pair(monkeypatch):
    a, b = torch.randint(0, 6, (2, 60), generator=torch.Generator().manual_seed(0)).double()
    assert kendall(a, b) == pytest.approx(_slow_kendall(a, b))
    monkeypatch.setattr("pellucid._rank_statistics._AT_ONCE", 16)
    assert kendall(a, b) == pytest.approx(_slow_kendall(a, b))


def _slow_kendall(a, b):
    score = free_a = free_b = 0
    for i, j in combinations(range(len(a)), 2):
        x, y = np.sign(float(a[i] - a[j])), np.sign(float(b[i] - b[j]))
        score, free_a, free_b = score + x * y, free_a + abs(x), free_b + abs(y)
    return score / (free_a * free_b) ** 0.5


def test_overlaps_by_hand():
    one, other = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0]), torch.tensor([4.0, 5.0, 1.0, 2.0, 3.0])
    assert top_overlap(one, other, 2) == 1.0
    assert top_overlap(one, other, 3) == pytest.approx(2 / 3)
    assert top_overlap(one, other, 99) == 1.0
    p, overlaps = 0.8, [0.0, 1.0, 2 / 3, 3 / 4, 1.0]
    series = sum(p**d * a for d, a in enumerate(overlaps, start=1))
    assert rank_biased_overlap(one, other, p) == pytest.approx((1 - p) / p * series + p**5)
    assert rank_biased_overlap(one, one, 0.9) == pytest.approx(1.0)


def test_auroc_is_counted_pair_by_pair():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 5, (40,), generator=generator).double()
    positive = torch.rand(40, generator=generator) < 0.3
    pairs = [(float(a), float(b)) for a in scores[positive] for b in scores[~positive]]
    expected = np.mean([1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs])
    assert auroc(scores, positive) == pytest.approx(expected)
    assert auroc(scores, torch.ones(40, dtype=torch.bool)) is None


# ---- agreement -----------------------------------------------------------------------------------


def several(tiny, names=("gradient_x_input", "rollout", "random"), text="not very good at all"):
    return [pellucid.explain(tiny("bert"), text, method=name) for name in names]


@pytest.mark.parametrize("by", ["spearman", "kendall", "top", "rbo"])
def test_agreement_is_symmetric_and_one_with_itself(by, tiny):
    found = several(tiny)
    table = pellucid.agreement([*found, found[0]], by=by, top=2)
    assert torch.equal(table.values, table.values.T)
    assert table.values.diagonal().tolist() == [1.0] * 4
    assert table.values[0, 3] == pytest.approx(1.0)
    assert (table.values <= 1).all()
    assert all(name in repr(table) for name in ("rollout", "random", "gradient_x_input (LABEL"))


def test_special_tokens_do_not_agree(tiny):
    found = several(tiny)
    moved = replace(found[0], scores=found[0].scores.clone())
    moved.scores[0] = 1e6
    assert pellucid.agreement([found[0], moved]).values[0, 1] == pytest.approx(1.0)
    turned = replace(found[0], scores=-found[0].scores)
    assert pellucid.agreement([found[0], turned]).values[0, 1] == pytest.approx(-1.0)
    sizes = pellucid.agreement([found[0], turned], absolute=True)
    assert sizes.values[0, 1] == pytest.approx(1.0)


def test_maps_and_patches_are_compared_as_maps():
    model = build("vit")
    image = sample_inputs(model)[0]
    found = [pellucid.explain(model, image, method=name) for name in ("rollout", "gradient")]
    assert found[0].scores.dim() != found[1].scores.dim()
    table = pellucid.agreement(found)
    expected = spearman(found[0].map(), found[1].map())
    assert table.values[0, 1] == pytest.approx(expected)


def test_what_cannot_be_compared(tiny):
    found = several(tiny)
    with pytest.raises(InputError, match="different inputs"):
        pellucid.agreement([found[0], *several(tiny, ("random",), "a fine film")])
    with pytest.raises(ArgumentError, match="between explanations"):
        pellucid.agreement(found[:1])
    with pytest.raises(ArgumentError, match="unknown comparison"):
        pellucid.agreement(found, by="pearson")
    with pytest.raises(ArgumentError, match="persistence"):
        pellucid.agreement(found, by="rbo", persistence=1.0)
    flat = replace(found[1], scores=torch.ones_like(found[1].scores))
    with pytest.raises(InputError, match="rollout"):
        pellucid.agreement([found[0], flat])


def test_agreement_falls_as_orders_part(tiny):
    found = several(tiny)[0]
    noise = torch.randn(len(found.scores), generator=torch.Generator().manual_seed(0))
    spread = float(found.scores.std())
    copies = [replace(found, scores=found.scores + f * spread * noise) for f in (0.0, 0.3, 3.0)]
    table = pellucid.agreement([found, *copies])
    assert all(near >= far for near, far in pairwise(table.values[0, 1:].tolist()))

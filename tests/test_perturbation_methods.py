"""Occlusion, RISE, ViT-CX and TIS against closed forms and loops over the formulas, in float64."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import pellucid
from pellucid import ArgumentError, Resize, Target
from pellucid._case import Case
from pellucid._kmeans import kmeans
from pellucid._needs import Needs
from pellucid.methods import METHODS
from pellucid.methods.tis import _masks
from pellucid.testing.tiny import build, sample_inputs


class Linear(nn.Module):
    """Weighted pixels and a constant for three classes."""

    def __init__(self, height, width):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 3, height, width))
        self.bias = nn.Parameter(torch.randn(3))

    def forward(self, pixels):
        return torch.einsum("bchw,kchw->bk", pixels, self.weights) + self.bias


def linear(height, width):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = Linear(height, width).eval().double()
    model = pellucid.adapt(module, Resize((height, width)), labels=["x", "y", "z"])
    generator = torch.Generator().manual_seed(1)
    images = list(torch.rand(2, height, width, 3, generator=generator).numpy())
    return model, images, model.encode(images, Target()).inputs["pixel_values"]


def case_of(model, method, raw=None, target=None, **options):
    target = target or Target.probability(1)
    batch = model.encode(raw or sample_inputs(model), target)
    return Case(model, batch, target, spec=METHODS[method], **options)


def probability(model, pixels, label=1):
    """p(class) of one image, by the model alone."""
    with torch.no_grad():
        return model.module(pixels[None]).logits[0].softmax(-1)[label]


# ---- occlusion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", ["zero", "black", "mean"])
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (2, 2), (3, 2), (4, 3), (3, 4), (9, 1)])
def test_occlusion_of_a_linear_model_is_exact(window, stride, baseline):
    model, images, pixels = linear(6, 8)
    found = pellucid.explain(
        model,
        images,
        method="occlusion",
        target=Target.logit(1),
        window=window,
        stride=stride,
        baseline=baseline,
    )
    for one, x in zip(found, pixels, strict=True):
        empty = {
            "zero": torch.zeros(3, 1, 1),
            "black": torch.full((3, 1, 1), -1.0),
            "mean": x.mean(dim=(1, 2), keepdim=True),
        }[baseline]
        lost = (model.module.weights[1].detach() * (x - empty)).sum(0)
        total, covered = np.zeros((6, 8)), np.zeros((6, 8))
        tall, wide = min(window, 6), min(window, 8)
        for top in range(0, 6 - tall + stride, stride):
            for left in range(0, 8 - wide + stride, stride):
                place = np.s_[top : top + tall, left : left + wide]
                total[place] += lost[place].sum().item()
                covered[place] += 1
        expected = torch.from_numpy(total / np.maximum(covered, 1))
        torch.testing.assert_close(one.scores, expected, rtol=1e-9, atol=1e-9)


def test_occlusion_hides_a_patch_of_the_model_at_a_time():
    model = build("vit", dtype=torch.float64)
    image = sample_inputs(model)[0]
    case = case_of(model, "occlusion", [image])
    x = case.pixels[0]
    found = pellucid.explain(model, image, method="occlusion", target=1)
    assert found.unit == "class"
    for row, column in product(range(4), range(6)):
        place = np.s_[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        hidden = x.clone()
        hidden[(slice(None), *place)] = 0
        lost = (probability(model, x) - probability(model, hidden)).item()
        torch.testing.assert_close(
            found.scores[place], torch.full((8, 8), lost, dtype=torch.float64), rtol=1e-9, atol=1e-9
        )


def additive(texts):
    """A lexicon: the score of a text is the sum over its words."""
    worth = {"good": 2.0, "bad": -1.5, "not": -0.5, "film": 0.25}
    return [[0.0, sum(worth.get(word, 0.0) for word in text.split())] for text in texts]


def test_occlusion_of_an_additive_text_is_what_each_word_adds():
    box = pellucid.blackbox(additive, kind="text", labels=["no", "yes"], gives="logits")
    found = pellucid.explain(
        box, ["a good film", "not a bad film at all"], method="occlusion", target=Target.logit(1)
    )
    assert found[0].scores.tolist() == [0.0, 2.0, 0.25]
    assert found[1].scores.tolist() == [-0.5, 0.0, -1.5, 0.25, 0.0, 0.0]


@pytest.mark.parametrize("by", ["delete", "mask"])
def test_occlusion_of_a_text_takes_one_token_at_a_time(by):
    model = build("bert", dtype=torch.float64)
    found = pellucid.explain(model, "the film is fine", method="occlusion", target=1, by=by)
    ids = model.reader.tokenizer("the film is fine")["input_ids"]

    def p(tokens):
        with torch.no_grad():
            return model.module(torch.tensor([tokens])).logits[0].softmax(-1)[1].item()

    for place in range(1, len(ids) - 1):
        blank = [] if by == "delete" else [model.reader.tokenizer.mask_token_id]
        expected = p(ids) - p(ids[:place] + blank + ids[place + 1 :])
        assert found.scores[place].item() == pytest.approx(expected, abs=1e-10)
    assert found.scores[[0, -1]].eq(0).all()


@pytest.mark.parametrize("method", ["occlusion", "rise"])
def test_images_of_a_function_can_be_hidden(method):
    """A lamp is on if its upper half is bright."""

    def lamp(pictures):
        bright = [float(picture[:4].mean()) / 255 for picture in pictures]
        return [[0.0, value] for value in bright]

    box = pellucid.blackbox(lamp, kind="image", labels=["off", "on"], size=(8, 8), gives="logits")
    found = pellucid.explain(
        box,
        np.full((8, 8, 3), 255, np.uint8),
        method=method,
        target=Target.logit("on"),
        **({"masks": 2000, "cells": 2, "keep": 0.5} if method == "rise" else {"window": 2}),
    )
    if method == "occlusion":
        assert found.scores[:4].numpy() == pytest.approx(np.full((4, 8), 1 / 8))
        assert found.scores[4:].eq(0).all()
    else:
        assert found.scores[:3].mean() > found.scores[5:].mean() + 0.05


# ---- RISE ----------------------------------------------------------------------------------------


def slow_mask(grid, top, left, height, width):
    """A grid enlarged by a cell more than the image, and cut where it was shifted to."""
    cells = len(grid)
    size = [(cells + 1) * -(-side // cells) for side in (height, width)]
    large = F.interpolate(grid[None, None], size, mode="bilinear", align_corners=False)[0, 0]
    return large[top : top + height, left : left + width]


def test_rise_is_the_slow_version():
    model = build("vit", dtype=torch.float64)
    images = sample_inputs(model)
    found = pellucid.explain(
        model, images, method="rise", target=1, masks=20, cells=3, keep=0.4, batch_size=7
    )
    for raw, one in zip(images, found, strict=True):
        case = case_of(model, "rise", [raw])
        (generator,) = case.generators
        grids = (torch.rand(20, 3, 3, generator=generator) < 0.4).double()
        tops = torch.randint(11, (20,), generator=generator).tolist()  # a cell is 11 x 16 pixels
        lefts = torch.randint(16, (20,), generator=generator).tolist()
        total = torch.zeros(32, 48, dtype=torch.float64)
        for grid, top, left in zip(grids, tops, lefts, strict=True):
            mask = slow_mask(grid, top, left, 32, 48)
            total += probability(model, case.pixels[0] * mask) * mask
        torch.testing.assert_close(one.scores, total / (20 * 0.4), rtol=1e-9, atol=1e-9)


def test_rise_is_unbiased_for_a_linear_model():
    """Against the exact expectation over all grids and shifts, and its standard error."""
    model, images, pixels = linear(4, 6)
    x, keep, cells, masks = pixels[0], 0.3, 2, 4000
    weights, bias = model.module.weights[1].detach(), model.module.bias[1].item()
    first = second = torch.zeros(4, 6, dtype=torch.float64)
    for bits in product([0.0, 1.0], repeat=4):
        chance = keep ** sum(bits) * (1 - keep) ** (4 - sum(bits)) / 6  # of 2 x 3 shifts
        grid = torch.tensor(bits, dtype=torch.float64).view(2, 2)
        for top, left in product(range(2), range(3)):
            mask = slow_mask(grid, top, left, 4, 6)
            term = ((weights * x * mask).sum() + bias) * mask / keep
            first, second = first + chance * term, second + chance * term**2
    deviation = ((second - first**2) / masks).sqrt()
    found = pellucid.explain(
        model,
        images[0],
        method="rise",
        target=Target.logit(1),
        masks=masks,
        cells=cells,
        keep=keep,
        batch_size=500,
    )
    away = (found.scores - first) / deviation
    assert away.abs().max() < 4
    assert away.square().mean() < 3


def test_the_mean_of_masks_is_what_they_keep():
    model, images, _ = linear(28, 30)
    with torch.no_grad():
        model.module.weights.zero_()
        model.module.bias.fill_(1.0)
    found = pellucid.explain(
        model, images[0], method="rise", target=Target.logit(0), masks=4000, batch_size=1000
    )
    assert found.scores.mean().item() == pytest.approx(1.0, abs=0.02)
    assert found.scores.std().item() < 0.05


@pytest.mark.parametrize(("name", "value"), [("keep", 0.0), ("keep", 1.5), ("masks", 0)])
def test_rise_refuses_nonsense(name, value):
    model = build("vit")
    with pytest.raises(ArgumentError, match=name):
        pellucid.explain(model, sample_inputs(model)[0], method="rise", **{name: value})


# ---- ViT-CX --------------------------------------------------------------------------------------


def slow_vit_cx(model, case, threshold, spread):
    """One image, all maps at full size, clusters by trying all pairs (h w)."""
    x = case.pixels[0]
    seen = []
    norm = model.anatomy.middles[-1][0].module
    handle = norm.register_forward_hook(lambda m, args, output: seen.append(output))
    p = probability(model, x)
    handle.remove()
    rows, columns = case.batch.items[0].grid
    maps = seen[0][0, model.anatomy.prefix :].T.reshape(-1, 1, rows, columns).detach()
    height, width = x.shape[1:]
    large = F.interpolate(maps, (height, width), mode="bilinear", align_corners=False).flatten(1)
    large = torch.stack([(one - one.min()) / (one.max() - one.min()) for one in large])
    apart = 1 - F.cosine_similarity(large[:, None], large[None], dim=-1)
    clusters = [[i] for i in range(len(large))]
    while True:
        pairs = [(a, b) for a in range(len(clusters)) for b in range(a)]
        farthest = [apart[clusters[a]][:, clusters[b]].max().item() for a, b in pairs]
        if not farthest or min(farthest) >= threshold:
            break
        a, b = pairs[farthest.index(min(farthest))]
        clusters[b] += clusters.pop(a)
    clusters.sort(key=min)
    total, covered = torch.zeros(2, height, width, dtype=torch.float64)
    for k, members in enumerate(clusters):
        mask = large[members].sum(0).view(height, width)
        mask = (mask - mask.min()) / (mask.max() - mask.min())
        drawn = torch.randn(x.shape, generator=case.generator(0, k)).double()
        noise = spread * drawn * (1 - mask)
        s = probability(model, x * mask + noise) - probability(model, x + noise) + p
        total, covered = total + s * mask, covered + mask
    return total / covered / len(clusters), len(clusters)


@pytest.mark.parametrize("family", ["vit", "deit-distilled", "dinov2-registers"])
@pytest.mark.parametrize("distance", [0.15, 0.2])
def test_vit_cx_is_the_slow_version(family, distance):
    model = build(family, dtype=torch.float64, hidden_size=16, num_attention_heads=2)
    images = sample_inputs(model)[:2]
    found = pellucid.explain(
        model, images, method="vit_cx", target=1, distance=distance, spread=0.2, batch_size=3
    )
    for raw, one in zip(images, found, strict=True):
        expected, count = slow_vit_cx(model, case_of(model, "vit_cx", [raw]), distance, 0.2)
        assert 1 < count < 16
        assert one.provenance.forwards == 2 + 2 * count
        torch.testing.assert_close(one.scores, expected, rtol=1e-6, atol=1e-8)


def test_maps_that_show_nothing_are_left_out():
    model = build("vit", dtype=torch.float64)
    with torch.no_grad():
        model.anatomy.middles[-1][0].module.weight[5:] = 0.0
    found = pellucid.explain(model, sample_inputs(model)[0], method="vit_cx", distance=0.0)
    assert found.provenance.forwards == 2 + 2 * 5
    with torch.no_grad():
        model.anatomy.middles[-1][0].module.weight.zero_()
    nothing = pellucid.explain(model, sample_inputs(model)[0], method="vit_cx")
    assert nothing.scores.eq(0).all()


# ---- TIS -----------------------------------------------------------------------------------------


def sets_of(case, masks, ratios=(0.5,), standardize=False):
    return _masks(case, masks, ratios, standardize)


@pytest.mark.parametrize("family", ["vit", "bert", "gpt2"])
@pytest.mark.parametrize("standardize", [False, True])
def test_the_sets_of_tis_hold_the_largest_of_each_centroid(family, standardize):
    model = build(family, dtype=torch.float64)
    case = case_of(model, "tis")
    found = sets_of(case, 10, (0.5, 0.25), standardize)
    again = case_of(model, "tis")
    stream = again.record(Needs.STREAM).stream
    for row, generator in enumerate(again.generators):
        own = [i for i, flag in enumerate(again.content[row].tolist()) if flag]
        columns = []
        for layer in stream[1:]:
            for channel in range(layer.shape[-1]):
                column = torch.tensor([float(layer[row, i, channel]) for i in own]).double()
                if standardize:
                    column = (column - column.mean()) / column.std()
                columns.append(column)
        centroids = kmeans(torch.stack(columns), 10, generator)
        for part, ratio in enumerate((0.5, 0.25)):
            for number, centroid in enumerate(centroids):
                count = max(1, int(ratio * len(own)))
                best = sorted(range(len(own)), key=lambda i: -centroid[i])[:count]
                kept = {own[i] for i in best}
                assert set(found[row, 10 * part + number].nonzero()[:, 0].tolist()) == kept


def image_from_tokens(model, pixels, keep):
    """p(class) from [CLS] and the kept patches, through the parts of a Hugging Face ViT."""
    vit = model.module.vit
    with torch.no_grad():
        x = vit.embeddings(pixels[None])
        x = x[:, [0, *(i for i in range(1, x.shape[1]) if keep[i])]]
        for layer in vit.layers:
            x = layer(x)
        return model.module.classifier(vit.layernorm(x)[:, 0])[0].softmax(-1)[1]


def text_from_tokens(model, text, keep):
    """p(class) of the text without the other tokens."""
    ids = model.reader.tokenizer(text)["input_ids"]
    kept = [t for i, t in enumerate(ids) if keep[i] or i in (0, len(ids) - 1)]
    with torch.no_grad():
        return model.module(torch.tensor([kept])).logits[0].softmax(-1)[1]


@pytest.mark.parametrize("family", ["vit", "bert"])
@pytest.mark.parametrize("ratio", [0.5, (0.25, 0.5, 0.8)])
def test_tis_is_the_slow_version(family, ratio):
    model = build(family, dtype=torch.float64)
    inputs = sample_inputs(model)
    found = pellucid.explain(
        model, inputs, method="tis", target=1, masks=12, ratio=ratio, batch_size=5
    )
    ratios = ratio if isinstance(ratio, tuple) else (ratio,)
    for raw, one in zip(inputs, found, strict=True):
        case = case_of(model, "tis", [raw])
        keep = sets_of(case, 12, ratios)[0]
        assert len(keep) == 12 * len(ratios)
        length = case.mask.shape[1]
        total, covered = [0.0] * length, [0] * length
        for mask in keep.tolist():
            if family == "vit":
                w = float(image_from_tokens(model, case.pixels[0], mask))
            else:
                w = float(text_from_tokens(model, raw, mask))
            for i in range(length):
                total[i] += w * mask[i]
                covered[i] += mask[i]
        expected = [t / c if c else 0.0 for t, c in zip(total, covered, strict=True)]
        torch.testing.assert_close(
            one.scores, torch.tensor(expected, dtype=torch.float64), rtol=1e-6, atol=1e-7
        )
        assert one.scores[0] == 0  # [CLS] stays in all sets and has no score


def test_one_set_gives_its_tokens_its_probability():
    model = build("vit", dtype=torch.float64)
    found = pellucid.explain(model, sample_inputs(model)[0], method="tis", target=1, masks=1)
    assert found.scores.gt(0).sum() == 12
    assert len(found.scores[found.scores > 0].unique()) == 1
    assert "12 tokens were in none of the sets" in found.notes[-1]


def test_a_model_that_always_says_the_same_gives_one_score():
    model = build("vit", dtype=torch.float64)
    with torch.no_grad():
        model.module.classifier.weight.zero_()
    found = pellucid.explain(model, sample_inputs(model)[0], method="tis", masks=16, target=2)
    covered = found.scores[found.scores > 0]
    torch.testing.assert_close(covered, torch.full_like(covered, found.value))
    whole = pellucid.explain(model, sample_inputs(model)[0], method="tis", ratio=1.0, target=2)
    assert whole.provenance.forwards == 2  # all sets are the whole image


def test_several_images_go_through_together():
    model = build("vit")
    sizes = []
    model.anatomy.blocks[-1].register_forward_hook(lambda m, args, out: sizes.append(out.shape))
    images = sample_inputs(model)
    found = pellucid.explain(model, images, method="tis", masks=16, batch_size=16)
    assert {shape[1] for shape in sizes} == {25, 13}
    short = [shape[0] for shape in sizes if shape[1] == 13]
    assert sum(short) == sum(one.provenance.forwards - 1 for one in found)
    assert len(short) == -(-sum(short) // (16 * 25 // 13))  # as many tokens as 16 whole images


def test_maps_of_two_classes_differ():
    model = build("vit")
    image = sample_inputs(model)[0]
    for method in ("tis", "rise", "occlusion"):
        one, other = (
            pellucid.explain(model, image, method=method, target=c, **METHODS[method].quick).scores
            for c in (0, 1)
        )
        assert not torch.allclose(one, other)


@pytest.mark.parametrize("method", ["tis", "rise", "vit_cx"])
def test_a_rejected_class_is_told(method):
    model = build("vit")
    image = sample_inputs(model)[0]
    quick = METHODS[method].quick
    predicted = pellucid.explain(model, image, method=method, **quick)
    assert not any("predicts" in note for note in predicted.notes)
    other = (predicted.index + 1) % 3
    rejected = pellucid.explain(model, image, method=method, target=other, **quick)
    (note,) = (note for note in rejected.notes if "predicts" in note)
    assert predicted.label in note
    assert f"Target.logit({rejected.label!r})" in note
    forced = pellucid.explain(model, image, method=method, target=Target.logit(other), **quick)
    assert not any("predicts" in note for note in forced.notes)
    assert forced.signed


def test_a_regression_is_explained_by_its_value():
    from transformers import ViTConfig, ViTForImageClassification

    model = build("vit")
    config = ViTConfig(**{**model.module.config.to_dict(), "num_labels": 1})
    config.problem_type = "regression"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = ViTForImageClassification(config).eval()
    adapted = pellucid.adapt(module, model.reader.preprocessing.processor)
    found = pellucid.explain(adapted, sample_inputs(model)[0], method="tis", masks=4)
    assert found.signed
    assert found.unit == "value"


@pytest.mark.parametrize("ratio", [0.0, 1.2, (), (0.5, -1.0), "half", None])
def test_tis_refuses_nonsense(ratio):
    model = build("vit")
    with pytest.raises(ArgumentError, match="ratio"):
        pellucid.explain(model, sample_inputs(model)[0], method="tis", ratio=ratio)


@pytest.mark.parametrize(
    ("family", "method"),
    [("swin", "tis"), ("beit", "tis"), ("swin", "vit_cx"), ("bert", "rise"), ("bert", "vit_cx")],
)
def test_models_that_do_not_fit_are_told_what_is_missing(family, method):
    model = build(family)
    with pytest.raises(pellucid.UnsupportedCombination, match="missing:"):
        pellucid.explain(model, sample_inputs(model)[0], method=method)

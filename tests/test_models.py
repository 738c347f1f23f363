"""The bundled models: small, safe, what their cards say, and fit for each other."""

from __future__ import annotations

import re

import pytest
import torch

import pellucid
from pellucid.models import bundled_names, bundled_path, sample_images, sample_texts

NAMES = bundled_names()


def test_they_are_small_and_hold_no_code():
    folder = bundled_path(NAMES[0]).parent
    files = [
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    assert sum(path.stat().st_size for path in files) <= 12 * 10**6
    assert {path.suffix for path in files} <= {
        ".json",
        ".safetensors",
        ".md",
        ".png",
        ".txt",
        ".py",
    }
    assert [path.name for path in files if path.suffix == ".py"] == ["__init__.py"]


@pytest.mark.parametrize("name", NAMES)
def test_they_load_and_offer_everything(name):
    model = pellucid.load(f"pellucid/{name}")
    assert model.dtype == torch.float32
    entries = pellucid.list_methods(model)
    assert all(entry.fits for entry in entries if model.kind in entry.spec.kinds)


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_card_with_data_licence_recipe_and_accuracy(name):
    card = (bundled_path(name) / "README.md").read_text(encoding="utf-8")
    for words in ("license:", "Data", "Recipe", "eed 0", " %", "demonstration"):
        assert words in card, words


def test_sample_digits_are_read_as_their_names_say():
    model = pellucid.load("pellucid/digits-vit")
    for path, found in zip(sample_images(), pellucid.explain(model, sample_images()), strict=True):
        digit = re.match(r"digit-(\d)", path.stem).group(1)
        assert (found.label == digit) == ("hard" not in path.stem)


def test_plain_reviews_are_understood():
    model = pellucid.load("pellucid/reviews-bert")
    texts = {"a fine film": "positive", "what a waste of time": "negative"}
    for text, label in texts.items():
        assert pellucid.explain(model, text).label == label
    assert len(sample_texts()) >= 8


def test_the_classifier_and_the_masked_model_share_their_embeddings():
    classifier, masked = (pellucid.load(f"pellucid/reviews-{kind}") for kind in ("bert", "mlm"))
    one, other = (m.module.bert.embeddings.state_dict() for m in (classifier, masked))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert classifier.reader.tokenizer.get_vocab() == masked.reader.tokenizer.get_vocab()

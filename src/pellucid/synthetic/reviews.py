"""Models trained from scratch on labelled texts, with a tokenizer trained on the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._batches import Progress
from pellucid._errors import InputError, explain_error
from pellucid.adapters.text import text_parts
from pellucid.adapters.text_model import TextModel
from pellucid.synthetic.shapes import built, check_shape
from pellucid.synthetic.tokenizers import PAD, of_texts
from pellucid.synthetic.train import named
from pellucid.synthetic.training import Schedule, seeded, trained


@torch.inference_mode(False)  # gradients are needed, whatever surrounds the call
def train_reviews(
    texts: Sequence[str],
    labels: Sequence[int],
    shape: str = "bert",
    layers: int = 2,
    *,
    epochs: int = 5,
    batch: int = 32,
    lr: float = 5e-4,
    width: int = 192,
    heads: int = 12,
    vocabulary: int = 8000,
    longest: int = 256,
    device: str | torch.device = "cpu",
    seed: int = 0,
    progress: Progress = None,
) -> TextModel:
    """A sentiment model that learnt these texts and labels from nothing, ready to be explained.

    Main arguments: `labels` are 0 (negative) and 1 (positive); `shape` is "bert", "distilbert",
    "gpt2" or "fc", and `layers` how many of them. (The published models of SLALOM's paper have
    2 layers for films and 6 for restaurants, a width of 768 and 12 heads.)

    Other arguments: `vocabulary` is the size of a tokenizer of pairs of bytes, which has [CLS] and
    [SEP] and lower case but for "gpt2"; texts are cut after `longest` tokens, which is also the
    most that the model reads. The rest is as in `train`.
    """
    integer("layers", layers, 1, 2)
    integer("longest", longest, 8, 256)
    check_shape(shape, integer("width", width, 1, 192), integer("heads", heads, 1, 12))
    own = _checked(texts, labels)
    schedule = Schedule(epochs, batch, lr, device, seed)
    integer("vocabulary", vocabulary, 300, 8000)
    tokenizer = of_texts(texts, size=vocabulary, longest=longest, encloses=shape != "gpt2")
    with seeded(seed):
        module = built(
            shape,
            layers=layers,
            width=width,
            heads=heads,
            vocabulary=len(tokenizer),
            longest=longest,
        )
        module = trained(module, _rows(tokenizer, texts, longest), own, schedule, progress)
    return named(module, tokenizer, f"{shape} of {layers} layers, trained on {len(texts)} texts")


def _rows(tokenizer: Any, texts: Sequence[str], longest: int) -> Tensor:
    """The ids of every text, cut and padded (n t)."""
    rows = tokenizer(list(texts), truncation=True, max_length=longest, verbose=False)["input_ids"]
    ids = torch.full((len(rows), max(map(len, rows))), PAD)
    for line, row in zip(ids, rows, strict=True):
        line[: len(row)] = torch.tensor(row)
    return ids


def _checked(texts: Sequence[str], labels: Sequence[int]) -> Tensor:
    """The labels as numbers (n), one for each of some texts."""
    found = torch.as_tensor(labels)
    fits = found.shape == (len(texts),) and len(texts) > 0
    if not fits or not bool(((found == 0) | (found == 1)).all()):
        raise InputError(
            explain_error(
                "every text needs one label",
                got=f"{len(texts)} texts, labels of shape {tuple(found.shape)}",
                expected="at least one text, and 0 or 1 for each",
                instead="labels=[int(label == 'positive') for label in names]",
            )
        )
    for text in texts:
        text_parts(text)
    return found.long()

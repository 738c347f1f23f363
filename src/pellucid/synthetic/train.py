"""Models trained from scratch on sequences of words, and models that are the truth itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pellucid._arguments import integer
from pellucid._batches import Progress
from pellucid._errors import ArgumentError, explain_error
from pellucid.adapters import adapt
from pellucid.adapters.text_model import TextModel
from pellucid.surrogates import Linear, Slalom
from pellucid.synthetic.modules import SoftmaxMean, Sum
from pellucid.synthetic.sequences import EMPTY, Data, check_words
from pellucid.synthetic.shapes import LABELS, built, check_shape
from pellucid.synthetic.tokenizers import CLS, PAD, SPECIALS, of_words
from pellucid.synthetic.training import Schedule, seeded, trained

_LONGEST = 512  # words that a model reads which has no positions


@torch.inference_mode(False)  # gradients are needed, whatever surrounds the call
def train(
    shape: str = "bert",
    layers: int = 2,
    *,
    data: Data,
    epochs: int = 5,
    batch: int = 20,
    lr: float = 5e-4,
    width: int = 96,
    heads: int = 12,
    device: str | torch.device = "cpu",
    seed: int = 0,
    progress: Progress = None,
) -> TextModel:
    """A model that learnt the labels of the data from nothing, ready to be explained.

    Main arguments: `shape` is "bert", "distilbert", "gpt2", or "fc", fully connected ReLU layers on
    how often each word occurs; `layers` how many of them, `data` what `linear_data`, `slalom_data`
    or `Data.shuffled` gave.

    Other arguments: `epochs` rounds over the data in batches of `batch`, by AdamW at a rate that
    rises to `lr` and falls to zero; `width` of the hidden states (the published models have 768)
    and how many `heads` share it; `seed` decides weights, order and dropout, so that a CPU trains
    the same model again; `progress` is True, False, a function of (done, total), or None for a bar
    on a terminal. Texts are words between spaces; BERT's shapes get a [CLS] in front.
    """
    _check_data(data)
    integer("layers", layers, 1, 2)
    check_shape(shape, integer("width", width, 1, 96), integer("heads", heads, 1, 12))
    check_words(data.vocabulary)
    schedule = Schedule(epochs, batch, lr, device, seed)
    begins = shape in ("bert", "distilbert")
    longest = data.ids.shape[1] + begins
    with seeded(seed):
        module = built(
            shape,
            layers=layers,
            width=width,
            heads=heads,
            vocabulary=len(SPECIALS) + len(data.vocabulary),
            longest=longest,
        )
        module = trained(module, padded(data, begins), data.labels, schedule, progress)
    tokenizer = of_words(data.vocabulary, longest=longest, begins=begins)
    return named(module, tokenizer, f"{shape} of {layers} layers, trained on synthetic words")


def planted(truth: Linear | Slalom) -> TextModel:
    """The model that computes a sum, or a softmax-weighted mean, exactly.

    What explains a model can be held to it: nothing was learnt, so nothing is in doubt.
    """
    _check_plain(truth)
    words = tuple(str(unit) for unit in truth.units)
    check_words(words)
    blank = torch.zeros(len(SPECIALS), dtype=torch.float64)  # specials add nothing
    if isinstance(truth, Linear):
        module: nn.Module = Sum(torch.cat([blank, truth.weight]), truth.bias)
    else:
        module = SoftmaxMean(torch.cat([blank, truth.value]), torch.cat([blank, truth.importance]))
    tokenizer = of_words(words, longest=_LONGEST, begins=False)
    return named(module.eval(), tokenizer, f"planted {type(truth).__name__}")


def _check_data(data: Any) -> None:
    if not isinstance(data, Data):
        raise ArgumentError(
            explain_error(
                "there are no sequences with labels to learn",
                got=f"data: {type(data).__name__}",
                expected="what linear_data or slalom_data gave",
                instead="data=pellucid.synthetic.linear_data(5000)",
            )
        )


def _check_plain(truth: Any) -> None:
    if not isinstance(truth, Linear | Slalom):
        raise ArgumentError(
            explain_error(
                "only a sum or a softmax-weighted mean can be planted",
                got=f"truth: {type(truth).__name__}",
                expected="a Linear or a Slalom of pellucid.surrogates",
                instead="planted(slalom_truth())",
            )
        )
    classes = (truth.weight if isinstance(truth, Linear) else truth.value).dim() - 1
    if classes or (isinstance(truth, Slalom) and truth.special):
        raise ArgumentError(
            explain_error(
                "this function cannot be planted",
                got="a value for each of several classes" if classes else "special members",
                expected="one value a word, and no members but the words of a text",
                instead="planted(slalom_truth())",
            )
        )


def padded(data: Data, begins: bool) -> Tensor:
    """The ids that the tokenizer makes of the data's texts (n t)."""
    ids = torch.where(data.ids == EMPTY, PAD, data.ids + len(SPECIALS))
    return torch.cat([ids.new_full((len(ids), 1), CLS), ids], dim=1) if begins else ids


def named(module: nn.Module, tokenizer: Any, name: str) -> TextModel:
    """The module as a model of pellucid's."""
    found = adapt(module, tokenizer, name=name, labels=LABELS)
    assert isinstance(found, TextModel)
    return found

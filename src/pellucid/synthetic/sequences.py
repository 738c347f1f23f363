"""Sequences of words with labels drawn from log-odds that are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates import Linear, Slalom
from pellucid.synthetic.tokenizers import SPECIALS

Words = tuple[str, ...]
EMPTY = -1  # of `ids`, beyond the end of a sequence
_AT_ONCE = 10_000  # sequences whose counts are in memory


@dataclass(frozen=True, eq=False)
class Data:
    """So many sequences of one vocabulary, and the function that their labels were drawn from."""

    vocabulary: Words
    ids: Tensor  # n t: numbers of words, and EMPTY beyond the end
    labels: Tensor  # n: 0 or 1
    log_odds: Tensor  # n: of label 1, in closed form
    truth: Linear | Slalom

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> Tensor:
        """How many words each sequence has (n)."""
        return (self.ids != EMPTY).sum(dim=1)

    @property
    def sequences(self) -> list[Words]:
        """The words of each sequence."""
        rows = zip(self.ids.tolist(), self.lengths.tolist(), strict=True)
        return [tuple(self.vocabulary[i] for i in row[:length]) for row, length in rows]

    @property
    def texts(self) -> list[str]:
        """The sequences as texts."""
        return [" ".join(words) for words in self.sequences]

    def shuffled(self, seed: int = 0) -> Data:
        """The same sequences with each other's labels: a control in which nothing can be learnt.

        The log-odds stay those that the labels no longer have to do with.
        """
        generator = torch.Generator().manual_seed(integer("seed", seed, 0))
        order = torch.randperm(len(self), generator=generator)
        return replace(self, labels=self.labels[order])


def labelled(ids: Tensor, truth: Linear | Slalom, generator: torch.Generator) -> Data:
    """Sequences with a label each, drawn with p(y = 1) = sigmoid(F(t)) (section E.1.1, step 4)."""
    vocabulary = tuple(str(unit) for unit in truth.units)
    blank = Data(vocabulary, ids, ids.new_zeros(len(ids)), torch.zeros(len(ids)), truth)
    sequences = blank.sequences
    log_odds = torch.cat(
        [truth.predict(sequences[i : i + _AT_ONCE]) for i in range(0, len(sequences), _AT_ONCE)]
    )
    drawn = torch.rand(len(ids), generator=generator, dtype=torch.float64)
    return replace(blank, log_odds=log_odds, labels=(drawn < log_odds.sigmoid()).long())


def cut(ids: Tensor, lengths: Tensor) -> Tensor:
    """The first words of each row (n t), so many of them."""
    return ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], EMPTY)


def check_words(vocabulary: Words) -> None:
    """Words that a tokenizer can tell apart by the spaces between them."""
    wrong = [word for word in vocabulary if word.split() != [word] or word in SPECIALS]
    if wrong:
        raise ArgumentError(
            explain_error(
                "a unit of the truth is not one word",
                got=repr(wrong[0]),
                expected="words without spaces, none of which is a model's own, like [CLS]",
                instead="units=('the', 'good', 'bad')",
            )
        )

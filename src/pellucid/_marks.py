"""What people marked in a text, checked against the text that was explained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._types import Marks, Text
from pellucid._words import checked_spans, spaced_words


def read_marks(given: Any, explanation: Explanation) -> Marks:
    """Numbers for the words of the text, from one person or several.

    The words are those between white space, unless `given` is a tuple of their spans and the
    numbers. None, or no number at all, means that nobody marked anything.
    """
    assert isinstance(explanation.item, Text)  # the metrics that ask for marks are of texts
    text = explanation.item.parts[0]
    if len(explanation.item.parts) > 1:
        raise _wrong("a pair of texts", "one text", "measure explanations of single texts")
    spans, numbers = tuple(spaced_words(text)), given
    if isinstance(given, tuple) and len(given) == 2 and _holds_pairs(given[0]):
        spans, numbers = tuple(checked_spans(given[0], text)), given[1]
    table = _table([] if numbers is None else numbers)  # p w
    if table.numel() == 0:
        return Marks(spans, torch.zeros(1, len(spans), dtype=torch.float64))
    if table.shape[1] != len(spans):
        raise _wrong(
            f"{table.shape[1]} numbers for {len(spans)} words",
            "a number for every word between white space, or a tuple (spans, numbers)",
            "truth=(spans, numbers)",
        )
    return Marks(spans, table)


def _table(numbers: Any) -> Tensor:
    """One row of finite numbers a person."""
    try:
        table = torch.as_tensor(numbers, dtype=torch.float64).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        table = torch.empty(0, 0, 0)
    if table.dim() == 1:
        table = table[None]
    if table.dim() != 2 or not bool(table.isfinite().all()):
        raise _wrong(
            repr(numbers)[:200],
            "finite numbers, one a word, or a list of such lists, one a person",
            "truth=[0, 1, 1, 0]",
        )
    return table


def _holds_pairs(one: Any) -> bool:
    """Whether this is (start, end) for each word, and not what one of two people marked."""
    try:
        return all(len(pair) == 2 for pair in one)
    except TypeError:
        return False


def _wrong(got: str, expected: str, instead: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "these are not the marks of this text", got=got, expected=expected, instead=instead
        )
    )

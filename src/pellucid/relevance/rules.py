"""What a set of rules has to say: the way back through each kind of operation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd import Function

from pellucid._arguments import real
from pellucid._errors import ArgumentError, explain_error
from pellucid.relevance.activations import Elementwise
from pellucid.relevance.operations import Operation


class Rules(ABC):
    """Each method returns the operation's own numbers, with its rule as the way back.

    A move of numbers needs no rule: what comes back is moved the other way. Nor does a length that
    states are divided by (a norm written out): it is a constant, and may be used for nothing else.
    """

    def move(self, operation: Operation) -> Any:
        return operation.result()

    @abstractmethod
    def sum(self, operation: Operation) -> Any:
        """A sum, mean or difference of states, or of a state and a constant."""

    @abstractmethod
    def scale(self, operation: Operation) -> Any:
        """A state times or over a constant, number by number."""

    @abstractmethod
    def product(self, operation: Operation) -> Any:
        """A product of two states, element-wise or of matrices."""

    @abstractmethod
    def linear(self, operation: Operation) -> Any:
        """A linear layer or convolution of a state."""

    @abstractmethod
    def norm(self, operation: Operation) -> Any:
        """Layer or RMS normalisation of a state."""

    @abstractmethod
    def softmax(self, operation: Operation) -> Any:
        """The softmax of a state."""

    @abstractmethod
    def activation(self, x: Tensor, y: Tensor, function: Elementwise) -> Tensor:
        """An element-wise function y = f(x) with f(0) = 0."""


def at_least(name: str, value: float, least: float) -> None:
    """Refuse a setting of rules that is too small to mean anything."""
    if real(name, value) < least:
        raise ArgumentError(
            explain_error(
                f"the rules of relevance have no such {name}",
                got=f"{name}={value}",
                expected=f"a number of at least {least:g}",
                instead=f"{name}={least:g}",
            )
        )


class Rule(Function):
    """An autograd function that returns numbers which are there already; its backward is a rule."""

    @classmethod
    def on(cls, x: Tensor, y: Tensor, *settings: Any) -> Any:
        """The numbers y, which came of x, with this rule as the way back to x."""
        apply: Callable[..., Any] = cls.apply
        return apply(x, (y,), *settings)  # in a tuple y is new, and not a view of an argument

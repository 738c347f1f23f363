"""What is explained: one number for each input, computed from the model's output.

A `Target` says it in the user's words and is stored with every explanation; bound to a batch it
becomes an `Objective`, which computes it. All probabilities go through the log-odds in float64,
because the derivative of a softmax loses its digits where a model is nearly certain.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid._errors import ArgumentError, NumericalError, explain_error

Quantity = Literal["logit", "probability", "log_probability", "log_odds"]
QUANTITIES: tuple[Quantity, ...] = ("logit", "probability", "log_probability", "log_odds")
Name = int | str


@dataclass(frozen=True)
class Target:
    """The number to explain. Use the constructors: ``Target.probability("positive")``.

    `label` None means the predicted class (or token), decided once on the unchanged input.
    `quantity` None means what the method's paper explains, the logit for most.
    """

    label: Name | None = None
    quantity: Quantity | None = None
    against: Name | None = None
    text: str | None = None  # a continuation whose summed log-probability is explained
    mask: int = 0  # which [MASK] of a masked language model, counted from the left
    function: Callable[[Any], Tensor] | None = None

    @classmethod
    def predicted(cls, quantity: Quantity | None = None) -> Target:
        """The class, masked word or next token that the model predicts."""
        return cls(quantity=quantity)

    @classmethod
    def logit(cls, label: Name | None = None) -> Target:
        """The raw score of a class."""
        return cls(label, "logit")

    @classmethod
    def probability(cls, label: Name | None = None) -> Target:
        """The probability of a class."""
        return cls(label, "probability")

    @classmethod
    def log_probability(cls, label: Name | None = None) -> Target:
        """The logarithm of a class's probability."""
        return cls(label, "log_probability")

    @classmethod
    def log_odds(cls, label: Name | None = None, against: Name | None = None) -> Target:
        """The log-odds of a class against all the rest, or against one other class."""
        return cls(label, "log_odds", against)

    @classmethod
    def at_mask(
        cls, word: Name | None = None, mask: int = 0, quantity: Quantity | None = None
    ) -> Target:
        """A word (None: the predicted one) at the given [MASK] of a masked language model."""
        return cls(word, quantity, mask=mask)

    @classmethod
    def token(cls, text: str, quantity: Quantity | None = None) -> Target:
        """This next token of a causal language model; a leading space belongs to the token."""
        return cls(text, quantity)

    @classmethod
    def continuation(cls, text: str) -> Target:
        """The summed log-probability of this text after the input."""
        return cls(quantity="log_probability", text=text)

    @classmethod
    def of(cls, function: Callable[[Any], Tensor]) -> Target:
        """Any differentiable function of the model's output that gives one number an input."""
        return cls(function=function)

    @classmethod
    def parse(cls, target: Any) -> Target:
        """What `explain` accepts: a Target, a class by name or number, a callable, or None."""
        if isinstance(target, Target):
            target._check()
            return target
        if target is None:
            return cls.predicted()
        if not isinstance(target, bool | str) and hasattr(target, "__index__"):
            return cls(label=operator.index(target))  # whatever library's integer it is
        if not (isinstance(target, str) or callable(target)):
            raise ArgumentError(
                explain_error(
                    "this cannot be explained",
                    got=f"target={target!r}",
                    expected="a class by name or number, a pellucid.Target, or a function of the "
                    "model's output that gives one number an input",
                    instead="target=pellucid.Target.predicted()",
                )
            )
        return cls.of(target) if callable(target) else cls(label=target)

    def with_default(self, quantity: Quantity) -> Target:
        """This target with the method's own quantity where the user named none."""
        if self.quantity is not None or self.function is not None:
            return self
        return replace(self, quantity=quantity)

    def describe(self, unit: str = "class") -> str:
        """The number in words, as it is printed beside every explanation."""
        if self.function is not None:
            return f"{getattr(self.function, '__name__', 'a function')} of the output"
        if self.text is not None:
            return f"log-probability of the continuation {self.text!r}"
        what = (self.quantity or "score").replace("_", "-")
        whom = f"the predicted {unit}" if self.label is None else repr(self.label)
        against = "" if self.against is None else f" against {self.against!r}"
        return f"{what} of {whom}{against}"

    def _check(self) -> None:
        if self.quantity not in (None, *QUANTITIES):
            raise ArgumentError(
                explain_error(
                    "unknown quantity in target",
                    got=f"quantity={self.quantity!r}",
                    expected=f"one of {', '.join(QUANTITIES)}",
                    instead="pellucid.Target.logit('positive')",
                )
            )
        for name in (self.label, self.against):
            if isinstance(name, bool) or not isinstance(name, int | str | None):
                raise ArgumentError(
                    explain_error(
                        "a class is given by its name or number",
                        got=f"{name!r} in {self.describe()}",
                        expected="a string or an integer",
                        instead="pellucid.Target.logit('positive')",
                    )
                )
        if self.against is not None and self.against == self.label:
            raise ArgumentError(
                explain_error(
                    "a class has no odds against itself",
                    got=f"label={self.label!r}, against={self.against!r}",
                    expected="two classes",
                    instead=f"pellucid.Target.log_odds({self.label!r})",
                )
            )
        if self.against is not None and self.quantity != "log_odds":
            raise ArgumentError(
                explain_error(
                    "only log-odds compare a class with another",
                    got=f"quantity={self.quantity!r}, against={self.against!r}",
                    expected="quantity='log_odds' where `against` is given",
                    instead=f"pellucid.Target.log_odds({self.label!r}, against={self.against!r})",
                )
            )


@dataclass(frozen=True, eq=False)
class Objective:
    """A target with its class decided for every input of a batch."""

    target: Target
    classes: Tensor | None  # b k; None for a target that is a function
    against: int | None = None
    independent: bool = False  # one sigmoid a class instead of one softmax over all

    def of_rows(self, rows: Tensor) -> Tensor:
        """The explained number of each input, in float64, from its logits (b k c -> b)."""
        assert self.classes is not None
        logits = rows.double()
        classes = self.classes.to(logits.device)
        chosen = logits.gather(-1, classes[..., None]).squeeze(-1)  # b k
        if self.target.quantity in (None, "logit"):
            return chosen.sum(dim=-1)
        log_odds = chosen - self._rest(logits, classes)  # b k
        if self.target.quantity == "log_odds":
            return log_odds.sum(dim=-1)
        log_probability = F.logsigmoid(log_odds).sum(dim=-1)
        return log_probability.exp() if self.target.quantity == "probability" else log_probability

    def all_of_rows(self, rows: Tensor) -> Tensor:
        """Every quantity of the class (b q), in the order of `QUANTITIES`."""
        assert self.classes is not None
        logits = rows.double()
        classes = self.classes.to(logits.device)
        logit = logits.gather(-1, classes[..., None]).squeeze(-1)  # b k
        log_odds = logit - self._rest(logits, classes)  # b k
        log_probability = F.logsigmoid(log_odds).sum(dim=-1)
        found = {
            "logit": logit.sum(dim=-1),
            "probability": log_probability.exp(),
            "log_probability": log_probability,
            "log_odds": log_odds.sum(dim=-1),
        }
        return torch.stack([found[quantity] for quantity in QUANTITIES], dim=1)

    def of_output(self, output: Any, inputs: int) -> Tensor:
        """The explained number of each input by the user's own function of the output (b)."""
        assert self.target.function is not None
        value = self.target.function(output)
        if not isinstance(value, Tensor) or tuple(value.shape) != (inputs,):
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise ArgumentError(
                explain_error(
                    "the target function must give one number for each input of the batch",
                    got=f"target returned {shape} for {inputs} inputs",
                    expected="a tensor of shape (batch,)",
                    instead="target=lambda output: output.logits[:, 0, 3]",
                )
            )
        return value.double()

    def take(self, rows: Tensor) -> Objective:
        """The objective for a batch made of these rows."""
        return self if self.classes is None else replace(self, classes=self.classes[rows])

    def _rest(self, logits: Tensor, classes: Tensor) -> Tensor:
        """What the chosen logit competes with (b k): the other class, or all others together."""
        if self.against is not None:
            return logits[..., self.against]
        if self.independent:
            return torch.zeros_like(logits[..., 0])
        chosen = F.one_hot(classes, logits.shape[-1]).bool()
        return logits.masked_fill(chosen, -torch.inf).logsumexp(dim=-1)


def check_finite(logits: Tensor, name: str) -> None:
    """Stop at NaN or infinity in a model's output, before any score is made of it."""
    if not torch.isfinite(logits).all():
        bad = int((~torch.isfinite(logits)).sum())
        raise NumericalError(
            explain_error(
                f"the output of {name} is not finite",
                got=f"{bad} of {logits.numel()} numbers are NaN or infinite",
                expected="finite logits",
                instead="check the weights for NaN, or load with dtype=torch.float32",
            )
        )

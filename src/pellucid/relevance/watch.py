"""The context in which a model computes what it always does, with other rules for the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from pellucid._errors import UnsupportedCombination, explain_error
from pellucid.record.attention import AttentionWatch
from pellucid.record.places import Place, edited
from pellucid.relevance.operations import Operation, edited_in, kind_of, tensors_in
from pellucid.relevance.rules import Rules


@contextmanager
def following(
    rules: Rules, activations: Sequence[nn.Module] = (), model: nn.Module | None = None
) -> Iterator[RuleWatch]:
    """Inside the block, what this thread computes is differentiated by these rules.

    `activations` are the modules that count as one element-wise function each, and `model` is the
    whole, whose outputs must all have a known way back. The derivative itself is taken after the
    block, when nothing is watched any more.
    """
    watch, owner = RuleWatch(rules), get_ident()

    def leave(module: nn.Module, args: Any, output: Any) -> None:
        if get_ident() == owner:
            watch.leave(output)

    with ExitStack() as stack:
        if model is not None:
            stack.callback(model.register_forward_hook(leave).remove)
        for activation in activations:
            stack.enter_context(watch.as_one(activation))
        stack.enter_context(watch)
        stack.enter_context(AttentionWatch())  # entered last, so it sees attention first
        yield watch


class RuleWatch(TorchFunctionMode):
    """Gives each operation on what depends on the input the way back that its rule says."""

    def __init__(self, rules: Rules) -> None:
        super().__init__()
        self._rules = rules
        self.stopped_at = ""  # the operation without a rule at which relevance arrived
        self._source: Tensor | None = None  # the leaf that is explained
        self._known: WeakTensorKeyDictionary = WeakTensorKeyDictionary()  # has a known way back
        self._lengths: WeakTensorKeyDictionary = WeakTensorKeyDictionary()  # constants to divide by

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        args, kwargs = edited_in((tuple(args), dict(kwargs or {})), self._enter)
        operation = Operation(func, args, kwargs)
        divided = any(tensor in self._lengths for tensor in tensors_in((args, kwargs)))
        if not operation.dependent or not torch.is_grad_enabled():
            found = operation.result()
            return self._marked(found, self._lengths) if divided else found
        kind = kind_of(operation)
        if kind is None or not self._has_a_rule(operation, divided):
            return self._without_a_rule(operation)
        if kind == "length":
            return self._marked(operation.values(), self._lengths)
        if kind == "activation":
            x, *settings = operation.args
            found = self._rules.activation(
                x, operation.values(), lambda x: func(x, *settings, **kwargs)
            )
        else:
            found = getattr(self._rules, kind)(operation)
        return self._marked(found, self._known)

    @contextmanager
    def as_one(self, activation: nn.Module) -> Iterator[None]:
        """Inside the block, what this module does is one element-wise function."""
        entered: list[Tensor] = []

        def enter(x: Tensor) -> Tensor:
            entered.append(x)
            return x.detach()

        def leave(y: Tensor) -> Tensor | None:
            x = entered.pop()
            if not x.requires_grad:
                return None
            found = self._rules.activation(x, y, activation.forward)
            self._known[found] = True
            return found

        inside, outside = Place(activation, "input"), Place(activation, "output")
        with edited(inside, enter), edited(outside, leave):
            yield

    def leave(self, output: Any) -> None:
        """What the model returns must have been made here as well."""
        for tensor in tensors_in(output):
            self._enter(tensor)

    def _enter(self, tensor: Tensor) -> Tensor:
        """Weights become constants; a state that was not made here has an unknown way back."""
        if not tensor.requires_grad:
            return tensor
        if isinstance(tensor, nn.Parameter):
            return tensor.detach()
        if tensor.is_leaf:
            self._source = tensor if self._source is None else self._source
        elif tensor not in self._known:
            self._refuse(tensor, "an operation that torch does not show")
        return tensor

    def _has_a_rule(self, operation: Operation, divided: bool) -> bool:
        """Whether nothing stands in the way of its kind's rule.

        A second leaf is a weight in disguise, and a length is there to multiply or divide by.
        """
        leaves = [tensor for tensor in operation.dependent if tensor.is_leaf]
        if any(leaf is not self._source for leaf in leaves):
            return False
        return not divided or kind_of(operation) == "scale"

    def _marked(self, found: Any, mark: WeakTensorKeyDictionary) -> Any:
        """Remember what kind of tensors an operation returned."""
        if not isinstance(found, Tensor | list | tuple) and hasattr(found, "__next__"):
            return iter(self._marked(list(found), mark))
        for tensor in tensors_in(found):
            mark[tensor] = True
        return found

    def _without_a_rule(self, operation: Operation) -> Any:
        found = operation.result()
        for tensor in tensors_in((found, operation.args[0] if found is None else None)):
            if tensor.requires_grad:
                self._refuse(tensor, operation.name)
        return found

    def _refuse(self, tensor: Tensor, name: str) -> None:
        """Raise when relevance arrives at this tensor, and only then."""
        self._known[tensor] = True

        def refuse(arriving: Tensor) -> None:
            self.stopped_at = name
            raise UnsupportedCombination(
                explain_error(
                    "relevance arrived at an operation without a rule",
                    got=name,
                    expected="sums, products, linear layers, norms, softmax and activations",
                    instead="method='gradient_x_input', which needs no rules",
                )
            )

        tensor.register_hook(refuse)

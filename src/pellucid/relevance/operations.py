"""What an operation does with the states that depend on the input: a kind, told by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

Kind = Literal[
    "move", "sum", "scale", "product", "linear", "activation", "norm", "softmax", "length"
]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MOVES = _names(  # numbers change their place or their type, or some are left out
    "__get__ __getitem__ __iter__ as_strided broadcast_to bfloat16 cat chunk clone concat "
    "concatenate contiguous cpu cuda diagonal double expand expand_as flatten flip float gather "
    "half index_select masked_fill masked_select movedim moveaxis narrow pad permute ravel repeat "
    "repeat_interleave requires_grad_ reshape reshape_as roll select split squeeze stack swapaxes "
    "swapdims t take_along_dim tensor_split tile to transpose tril triu type type_as unbind "
    "unflatten unsqueeze view view_as where"
)
SUBTRACTIONS = _names("sub subtract __sub__ __rsub__ rsub")
SUMS = SUBTRACTIONS | _names(
    "add __add__ __radd__ sum mean avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d"
)
SIGNS = _names("neg negative __neg__")
MULTIPLICATIONS = _names("mul multiply __mul__ __rmul__")
DIVISIONS = _names("div divide true_divide __truediv__")
MATRIX_PRODUCTS = _names("matmul __matmul__ bmm mm einsum")
LINEAR = _names("linear conv1d conv2d conv3d")
ACTIVATIONS = _names("relu leaky_relu elu celu selu gelu silu mish tanh hardswish")
NORMS = _names("layer_norm rms_norm")
LENGTHS = _names("sqrt rsqrt std norm vector_norm linalg_vector_norm linalg_norm")


@dataclass(frozen=True)
class Operation:
    """One call of a torch function; its weights are constants already."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    @property
    def name(self) -> str:
        return getattr(self.function, "__name__", "")

    @property
    def first(self) -> Any:
        """Its first operand, where it was passed by position."""
        return self.args[0] if self.args else None

    @cached_property
    def dependent(self) -> tuple[Tensor, ...]:
        """The operands that depend on the input, in their order."""
        found = tensors_in((self.args, self.kwargs))
        return tuple(tensor for tensor in found if tensor.requires_grad)

    def result(self) -> Any:
        """What the operation returns, with the way back that autograd gives it."""
        return self.function(*self.args, **self.kwargs)

    def values(self) -> Any:
        """The same numbers, without a way back."""
        return self.of([tensor.detach() for tensor in self.dependent])

    def of(self, tensors: Sequence[Tensor]) -> Any:
        """What it returns for others in the place of its dependent operands."""
        rest = iter(tensors)

        def edit(tensor: Tensor) -> Tensor:
            return next(rest) if tensor.requires_grad else tensor

        args, kwargs = edited_in((tuple(self.args), dict(self.kwargs)), edit)
        return self.function(*args, **kwargs)

    def named(self, *names: str) -> dict[str, Any]:
        """Its first arguments by name, however they were passed."""
        return dict.fromkeys(names) | dict(zip(names, self.args, strict=False)) | dict(self.kwargs)


def kind_of(operation: Operation) -> Kind | None:
    """The kind of an operation on states that depend on the input; None where no rule is known."""
    name, dependent = operation.name, operation.dependent
    one = len(dependent) == 1
    if name in MOVES or (name == "dropout" and _is_off(operation)):
        return "move"
    if name in SUMS:
        return "sum"
    if name in MULTIPLICATIONS and len(dependent) <= 2:
        return "scale" if one else "product"
    if name in SIGNS:
        return "scale"
    if name in DIVISIONS:  # by a constant, and not rounded
        by_constant = one and dependent[0] is operation.first and not operation.kwargs
        return "scale" if by_constant else None
    if name in MATRIX_PRODUCTS and len(dependent) <= 2:
        return _kind_of_matrix_product(operation) if one else "product"
    if name == "baddbmm":  # a constant and a product
        added = operation.named("input")["input"]
        return "product" if len(dependent) == 2 and not added.requires_grad else None
    if name in LINEAR or name == "addmm":
        return "linear" if _is_linear_in_its_input(operation) else None
    if name in LENGTHS or (name in ("pow", "__pow__") and _exponent(operation) in (0.5, -0.5)):
        return "length"
    if name == "softmax":
        return "softmax"
    if not one or dependent[0] is not operation.first or _overwrites(operation):
        return None
    return "activation" if name in ACTIVATIONS else "norm" if name in NORMS else None


def _is_off(dropout: Operation) -> bool:
    return dropout.named("input", "p", "training")["training"] is False


def _exponent(power: Operation) -> float | None:
    found = power.named("input", "exponent")["exponent"]
    return found if isinstance(found, int | float) else None


def _overwrites(operation: Operation) -> bool:
    """Whether a function was told to write over its argument."""
    return any(value is True for value in (*operation.args, operation.kwargs.get("inplace")))


def _kind_of_matrix_product(operation: Operation) -> Kind:
    """A constant matrix on the right is a weight; any other constant weighs a sum."""
    right = operation.args[-1] if len(operation.args) == 2 else None
    weight = isinstance(right, Tensor) and right.dim() == 2 and not right.requires_grad
    return "linear" if weight and operation.name in ("matmul", "__matmul__", "mm") else "sum"


def _is_linear_in_its_input(operation: Operation) -> bool:
    """Whether only the input depends on the input, not a weight or bias."""
    position = 1 if operation.name == "addmm" else 0
    if operation.name == "addmm" and operation.kwargs:
        return False  # other factors than one
    args = operation.args
    return len(args) > position and [id(t) for t in operation.dependent] == [id(args[position])]


def wide(tensor: Tensor) -> Tensor:
    """In float32 at least, which the formulas of rules need."""
    return tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor


def tensors_in(found: Any) -> Iterator[Tensor]:
    """All tensors in nested lists, tuples and dictionaries."""
    if isinstance(found, Tensor):
        yield found
    elif isinstance(found, list | tuple):
        for inner in found:
            yield from tensors_in(inner)
    elif isinstance(found, Mapping):
        yield from tensors_in(list(found.values()))


def edited_in(found: Any, edit: Callable[[Tensor], Tensor]) -> Any:
    """The same nested structure with every tensor edited."""
    if isinstance(found, Tensor):
        return edit(found)
    if type(found) in (list, tuple):
        return type(found)(edited_in(inner, edit) for inner in found)
    if type(found) is dict:
        return {name: edited_in(inner, edit) for name, inner in found.items()}
    return found

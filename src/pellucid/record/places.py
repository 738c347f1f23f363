"""Places in a model where its state can be read or replaced: the input or output of a module.

A place is read and replaced by a hook on one module instance, put there by a context manager and
gone with it. Replacing a place by the value that was read there changes nothing, bit for bit, and
makes every later quantity differentiable with respect to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from threading import get_ident
from typing import Any, Literal

from torch import Tensor, nn

_STREAM_NAMES = ("hidden_states", "x", "src", "input")  # what blocks call their stream when named


@dataclass(frozen=True)
class Place:
    """The first tensor that a module receives, or that it returns."""

    module: nn.Module
    side: Literal["input", "output"]


@contextmanager
def edited(place: Place, edit: Callable[[Tensor], Tensor | None]) -> Iterator[None]:
    """Inside the block, pass what goes through the place to `edit`; None leaves it as it is.

    Passes of other threads through the same module are none of our business.
    """
    owner = get_ident()

    def own(tensor: Tensor) -> Tensor | None:
        return edit(tensor) if get_ident() == owner else None

    if place.side == "input":
        handle = place.module.register_forward_pre_hook(
            lambda module, args, kwargs: _edit_arguments(args, kwargs, own), with_kwargs=True
        )
    else:
        handle = place.module.register_forward_hook(
            lambda module, args, output: _edit_output(output, own)
        )
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def replaced(place: Place, value: Tensor) -> Iterator[None]:
    """Inside the block, the model goes on with `value` at this place."""
    with edited(place, lambda seen: value.to(device=seen.device, dtype=seen.dtype)):
        yield


@contextmanager
def recorded(places: dict[str, Place]) -> Iterator[dict[str, Tensor]]:
    """Inside the block, the returned dictionary fills with the tensors seen at the places."""
    seen: dict[str, Tensor] = {}
    with ExitStack() as stack:
        for name, place in places.items():
            stack.enter_context(edited(place, _keeper(seen, name)))
        yield seen


@contextmanager
def reached(place: Place) -> Iterator[list[Tensor]]:
    """Inside the block, a pass ends at the place; the returned list holds what was seen there."""
    seen: list[Tensor] = []

    def end(tensor: Tensor) -> None:
        seen.append(tensor)
        raise _ReachedError

    try:
        with edited(place, end):
            yield seen
    except _ReachedError:
        return


class _ReachedError(Exception):
    """Carries a pass out of the model; it never leaves this file."""


def _keeper(seen: dict[str, Tensor], name: str) -> Callable[[Tensor], None]:
    def keep(tensor: Tensor) -> None:
        seen[name] = tensor

    return keep


def _edit_arguments(
    args: tuple[Any, ...], kwargs: dict[str, Any], edit: Callable[[Tensor], Tensor | None]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Apply `edit` to the first tensor among the arguments, or to the one named like a stream."""
    for index, value in enumerate(args):
        if isinstance(value, Tensor):
            new = edit(value)
            return None if new is None else ((*args[:index], new, *args[index + 1 :]), kwargs)
    for name in _STREAM_NAMES:
        if isinstance(kwargs.get(name), Tensor):
            new = edit(kwargs[name])
            return None if new is None else (args, {**kwargs, name: new})
    return None


def _edit_output(output: Any, edit: Callable[[Tensor], Tensor | None]) -> Any:
    """Apply `edit` to a tensor, or to the first element of a tuple."""
    if isinstance(output, Tensor):
        return edit(output)
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        new = edit(output[0])
        return None if new is None else (new, *output[1:])
    return None

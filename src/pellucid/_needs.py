"""What methods ask of a model: declared as data, offered by adapters, compared in one function."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from pellucid._errors import UnsupportedCombination

if TYPE_CHECKING:
    from pellucid.adapters.base import Adapter


class Needs(enum.Flag):
    """One flag for each thing that a method or metric may ask of a model."""

    NOTHING = 0
    GRADIENTS = enum.auto()
    STREAM = enum.auto()
    ATTENTION = enum.auto()
    VALUES = enum.auto()
    BRANCHES = enum.auto()
    PROJECTION = enum.auto()
    READOUT = enum.auto()
    TOKENS = enum.auto()
    TOKEN_DROP = enum.auto()
    RULES = enum.auto()


MEANING: dict[Needs, str] = {
    Needs.GRADIENTS: "gradients with respect to the input",
    Needs.STREAM: "the residual stream of tokens that its blocks read and write",
    Needs.ATTENTION: "attention probabilities of every block",
    Needs.VALUES: "value vectors of every attention head",
    Needs.BRANCHES: "the attention and feed-forward branch of every block",
    Needs.PROJECTION: "the linear map by which every attention head enters the stream",
    Needs.READOUT: "the token, or the pooling of tokens, that its prediction is read from",
    Needs.TOKENS: "tokens or patches that a score can be given to",
    Needs.TOKEN_DROP: "leaving tokens out of the input",
    Needs.RULES: "a rule of relevance for each of its operations",
}


class Spec(Protocol):
    """What `require` reads of a method's or metric's declaration."""

    @property
    def name(self) -> str: ...
    @property
    def role(self) -> str: ...
    @property
    def needs(self) -> Needs: ...
    @property
    def kinds(self) -> tuple[str, ...]: ...


def flags(needs: Needs) -> Iterator[Needs]:
    """The single flags of a set, in their order of declaration."""
    return (flag for flag in MEANING if flag in needs)


def obstacle(adapter: Adapter, spec: Spec) -> str:
    """Why this method or metric cannot run on this model: one sentence, or nothing."""
    if adapter.kind not in spec.kinds:
        return f"it is made for {' and '.join(spec.kinds)} models; this one reads {adapter.kind}s"
    missing = spec.needs & ~adapter.offers
    return "; ".join(f"{MEANING[flag]}: {adapter.missing(flag)}" for flag in flags(missing))


def require(adapter: Adapter, spec: Spec, table: Mapping[str, Spec]) -> None:
    """Raise the one clear error if the model does not offer all that the declaration asks for.

    `table` holds the others of its kind, of which those that do fit are named.
    """
    reason = obstacle(adapter, spec)
    if not reason:
        return
    fitting = [name for name, other in table.items() if not obstacle(adapter, other)]
    needed = ", ".join(MEANING[flag] for flag in flags(spec.needs)) or "predictions"
    raise UnsupportedCombination(
        "\n".join(
            [
                f"{spec.role} {spec.name!r} cannot run on this model ({adapter.name}).",
                f"  needs:    {needed}",
                f"  missing:  {reason}",
                f"  instead:  {' or '.join(f'{spec.role}={name!r}' for name in fitting[:3])}"
                if fitting
                else f"  instead:  another model; no {spec.role} runs on this one",
                f"  see:      pellucid.list_{spec.role}s(model) shows what fits, and why not",
            ]
        )
    )

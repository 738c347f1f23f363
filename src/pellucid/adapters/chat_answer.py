"""What a chat model answered: the probabilities of its first token, shared out over the labels.

Of an answer no more is kept than the most probable first tokens, so that answers which are stored
hold neither prompts nor anything else that a service sends along.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pellucid._errors import ArgumentError, ModelError, explain_error

_IMPOSSIBLE = -1000.0  # services write -9999 for a token whose log-probability they do not know
_ROUNDING = 1e-6  # of the probabilities of an answer, which are written in single precision


@dataclass(frozen=True)
class Reply:
    """The most probable first tokens of an answer with their log-probabilities."""

    top: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, response: Any) -> Reply:
        """From a response in the form of OpenAI's chat.completions, as a mapping or an object."""
        found = response if isinstance(response, Mapping) else _dumped(response)
        try:
            logprobs = found["choices"][0]["logprobs"]
            content = None if logprobs is None else logprobs["content"]
        except (KeyError, IndexError, TypeError):
            content = None
        if not isinstance(content, Sequence):
            raise _no_log_probabilities(found)
        if not content:  # the model ended its answer before the first token
            return cls(())
        try:
            first = content[0]
            tokens = [(one["token"], float(one["logprob"])) for one in first["top_logprobs"]]
            if first["token"] not in [token for token, _ in tokens]:
                tokens.append((first["token"], float(first["logprob"])))
        except (KeyError, TypeError, ValueError):
            raise _no_log_probabilities(found) from None
        return cls._checked(tokens)

    @classmethod
    def _checked(cls, tokens: Sequence[tuple[Any, float]]) -> Reply:
        for token, value in tokens:
            if not isinstance(token, str) or math.isnan(value) or value > _ROUNDING:
                raise ModelError(
                    explain_error(
                        "a token of this answer has no log-probability",
                        got=f"{str(token)[:40]!r} with {value!r}",
                        expected="a string with a number of at most 0",
                        instead="a service that gives the log-probabilities of its model",
                    )
                )
        return cls(tuple((t, min(v, 0.0)) for t, v in tokens if v > _IMPOSSIBLE))

    def to_json(self) -> str:
        """As it is stored."""
        return json.dumps(self.top)

    @classmethod
    def from_json(cls, text: str) -> Reply:
        """As it was stored."""
        return cls(tuple((str(token), float(value)) for token, value in json.loads(text)))


@dataclass(frozen=True)
class Reading:
    """A log-probability for each label, and which of them are bounds."""

    log_probabilities: tuple[float, ...]
    censored: tuple[bool, ...]  # not among the tokens that were returned

    @property
    def unanswered(self) -> bool:
        """Whether no label was among the tokens at all."""
        return all(self.censored)


def read_labels(reply: Reply, variants: Sequence[Sequence[str]]) -> Reading:
    """The probability of each label: the sum over its variants among the tokens of the answer.

    A label of which no token was returned counts as one token that is as probable as the least of
    those that were, or as what all of them leave over. No token that is missing can have more, so
    a label that is missing never wins over one that was named.
    """
    if not reply.top:
        return Reading((0.0,) * len(variants), (True,) * len(variants))
    least = min(value for _, value in reply.top)
    rest = max(1.0 - math.fsum(math.exp(value) for _, value in reply.top), 0.0) + _ROUNDING
    bound = min(least, math.log(rest))
    found = [[value for token, value in reply.top if token in names] for names in variants]
    return Reading(
        tuple(_log_sum_exp(values) if values else bound for values in found),
        tuple(not values for values in found),
    )


def checked_labels(labels: Any) -> dict[str, tuple[str, ...]]:
    """Each label with the tokens that stand for it; a list of labels gets the usual spellings."""
    if isinstance(labels, Mapping):
        given = {k: (v,) if isinstance(v, str) else tuple(v) for k, v in labels.items()}
    elif isinstance(labels, Sequence) and not isinstance(labels, str):
        given = {label: _spellings(label) for label in labels}
    else:
        given = {}
    tokens = [token for variants in given.values() for token in variants]
    named = all(isinstance(name, str) and name for name in (*given, *tokens))
    if len(given) < 2 or not all(given.values()) or not named or len(set(tokens)) < len(tokens):
        raise ArgumentError(
            explain_error(
                "these labels cannot be told apart by the first token of an answer",
                got=f"labels={labels!r}",
                expected="two labels or more, each with its tokens, and no token of two labels",
                instead="labels={'positive': ['positive', 'Positive'], 'negative': ['negative']}",
            )
        )
    return given


def _spellings(label: Any) -> tuple[str, ...]:
    """A label as it is, in small letters and with a capital, each also after a space."""
    if not isinstance(label, str):
        return ()
    cases = dict.fromkeys([label, label.lower(), label.capitalize()])
    return tuple(space + one for one in cases for space in ("", " "))


def _log_sum_exp(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def _dumped(response: Any) -> Any:
    dump = getattr(response, "model_dump", None)
    return dump() if callable(dump) else response


def _no_log_probabilities(response: Any) -> ModelError:
    got = f"the fields {sorted(map(str, response))[:8]}" if isinstance(response, Mapping) else ""
    return ModelError(
        explain_error(
            "the answers of this model carry no log-probabilities of their tokens",
            got=got or type(response).__name__,
            expected="choices[0].logprobs.content[0].top_logprobs, as in OpenAI's chat.completions",
            instead="a model and a service that support logprobs=True with top_logprobs",
        )
    )

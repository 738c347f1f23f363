"""A chat model behind an API, explained by how probable each label is as its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, InputError, ModelError, explain_error
from pellucid._target import Target
from pellucid._types import Picture, Text
from pellucid.adapters.blackbox import BlackBox, form_of
from pellucid.adapters.chat_answer import Reading, checked_labels, read_labels
from pellucid.adapters.chat_asking import Asker, Limits
from pellucid.adapters.chat_cache import Cache
from pellucid.adapters.chat_prompt import Prompt, checked_prompt
from pellucid.adapters.chat_transport import Call, Client, Endpoint, checked_url
from pellucid.adapters.clock import Clock
from pellucid.adapters.pieces import Split

Unanswered = Literal["refuse", "even"]
_SETTINGS = {"max_tokens": 1, "temperature": 0, "logprobs": True, "top_logprobs": 20, "seed": 0}
_BYTES = 4  # of UTF-8 in a token, roughly
_FRAME = 4  # tokens around each message, roughly


@dataclass
class Tally:
    """What happened while an explanation was made."""

    answers: int = 0
    censored: int = 0
    unanswered: int = 0
    damaged: int = 0

    def notes(self) -> list[str]:
        """What its reader should know."""
        lines = {
            "do not name every label; the missing one counts as the least probable token that was "
            "returned, which mostly understates the log-odds": self.censored,
            "name no label at all, and count as undecided": self.unanswered,
            "were stored, had been damaged, and were asked (and paid) for again": self.damaged,
        }
        return [f"{n} of {self.answers} answers {what}" for what, n in lines.items() if n]


_tally: ContextVar[Tally | None] = ContextVar("tally", default=None)


@dataclass(frozen=True)
class Estimate:
    """What an explanation takes at most, if no answer is known yet; tokens are a rough guess."""

    calls: int
    prompt_tokens: int
    answer_tokens: int
    cost: float | None  # where the price was given


@dataclass(frozen=True, eq=False)
class Judge:
    """A function of texts: the log-probability of each label as the first token of the answer."""

    asker: Asker
    prompt: Prompt
    labels: Mapping[str, tuple[str, ...]]
    unanswered: Unanswered

    def __call__(self, texts: list[str]) -> Tensor:
        """One row a text, one column a label."""
        asked = self.asker.ask([self.prompt.messages(text) for text in texts])
        readings = [read_labels(one.reply, list(self.labels.values())) for one in asked]
        for text, reading in zip(texts, readings, strict=True):
            self._check(text, reading)
        tally = _tally.get() or Tally()
        tally.answers += len(readings)
        tally.censored += sum(any(r.censored) and not r.unanswered for r in readings)
        tally.unanswered += sum(r.unanswered for r in readings)
        tally.damaged += sum(one.damaged for one in dict(zip(texts, asked, strict=True)).values())
        undecided = (0.0,) * len(self.labels)
        rows = [undecided if r.unanswered else r.log_probabilities for r in readings]
        return torch.tensor(rows, dtype=torch.float64)

    def _check(self, text: str, reading: Reading) -> None:
        if reading.unanswered and self.unanswered == "refuse":
            raise ModelError(
                explain_error(
                    f"the model's answer names no label, for {text[:60]!r}",
                    got="none of their tokens among the most probable first tokens of the answer",
                    expected=" or ".join(map(repr, self.labels)),
                    instead="a prompt that asks for the label alone, its tokens in labels=, or "
                    "unanswered='even' to count such answers as undecided",
                )
            )


class ChatModel(BlackBox):
    """A black box whose function is a service; made by `pellucid.chat`."""

    def __init__(
        self,
        judge: Judge,
        split: Any,
        mask: str | None,
        price: tuple[float, float] | None,
        name: str,
    ) -> None:
        labels = list(judge.labels)
        form = form_of("text", labels, "strings", split, mask, None)
        super().__init__(judge, "text", labels, form, gives="logits", name=name)
        self._judge = judge
        self._price = price

    @property
    def calls(self) -> int:
        """How many calls were made so far, failed ones included."""
        return self._judge.asker.calls

    def estimate(self, evaluations: int, text: str) -> Estimate:
        """What so many evaluations of texts like this one will take."""
        calls = integer("evaluations", evaluations, 1, 500)
        messages = self._judge.prompt.messages(text)
        each = sum(_FRAME + -(-len(m["content"].encode()) // _BYTES) for m in messages)
        cost = None
        if self._price is not None:
            cost = (each * self._price[0] + self._price[1]) * calls / 1e6
        return Estimate(calls, calls * each, calls, cost)

    def read(self, raw: Any, target: Target, **options: Any) -> Text | Picture:
        if isinstance(raw, tuple):
            raise InputError(
                explain_error(
                    "a prompt has one place for one text",
                    got=f"{len(raw)} texts",
                    expected="a string",
                    instead="pellucid.explain(model, 'a fine film')",
                )
            )
        return super().read(raw, target, **options)

    def weights_hash(self) -> str:
        return "unknown"

    @contextmanager
    def noted(self) -> Iterator[list[str]]:
        tally, notes = Tally(), list[str]()
        token = _tally.set(tally)
        try:
            yield notes
        finally:
            _tally.reset(token)
        notes += tally.notes()


def chat(
    client_call: Callable[..., Any] | None = None,
    *,
    labels: Mapping[str, Sequence[str]] | Sequence[str],
    prompt: str,
    system: str | None = None,
    examples: Sequence[tuple[str, str]] = (),
    model: str | None = None,
    url: str | None = None,
    key_from: str | None = None,
    settings: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    calls: int | None = None,
    price: tuple[float, float] | None = None,
    unanswered: Unanswered = "refuse",
    split: Split = "words",
    mask: str | None = None,
    workers: int = 4,
    rate: float | None = None,
    attempts: int = 6,
    timeout: float = 60.0,
    clock: Clock | None = None,
) -> ChatModel:
    """A chat model that answers with one of some labels, ready to be explained.

    Main arguments: `client_call` is a function (messages, **settings) that returns a response of
    chat.completions, such as ``client.chat.completions.create``; or `url` is an address of that
    kind, and `key_from` the environment variable that holds its key. `model` is its name there.
    `labels` has for each label the first tokens of answers that mean it; a list of labels gets the
    usual spellings. `prompt` is the question with {text} in one place, `system` what stands before,
    `examples` are texts with the answers that are due.

    What it costs: `cache` is a file that keeps all answers, so that none is ever paid for twice;
    `calls` is the most that may be made; `price` is that of a million tokens read and written, for
    ``model.estimate(evaluations, text)``.

    Other arguments: `unanswered` says what becomes of an answer that names no label: "refuse", or
    "even", which counts it as undecided; `settings` go into every call (None leaves one of ours
    out); `split` and `mask` are those of `blackbox`; `workers` questions are asked at a time, at
    most `rate` a minute, each with so many `attempts` of `timeout` seconds; `clock` is who waits.
    """
    clock = clock or Clock()
    call, service = _service(client_call, model, url, key_from, timeout, cache, clock)
    limits = Limits(
        integer("workers", workers, 1, 4),
        integer("attempts", attempts, 1, 6),
        None if calls is None else integer("calls", calls, 1, 1000),
        None if rate is None else _positive("rate", rate, 60.0),
    )
    asker = Asker(
        call,
        service,
        _checked_settings(settings, model),
        None if cache is None else Cache(cache, clock),
        limits,
        clock,
    )
    if unanswered not in ("refuse", "even"):
        raise ArgumentError(
            explain_error(
                "unknown policy for answers that name no label",
                got=f"unanswered={unanswered!r}",
                expected="'refuse' or 'even'",
                instead="unanswered='even'",
            )
        )
    asked = checked_prompt(prompt, system, examples)
    judge = Judge(asker, asked, checked_labels(labels), unanswered)
    name = model or str(getattr(client_call, "__name__", type(client_call).__name__))
    return ChatModel(judge, split, mask, _checked_price(price), name)


def _service(
    client_call: Any,
    model: Any,
    url: Any,
    key_from: Any,
    timeout: float,
    cache: Any,
    clock: Clock,
) -> tuple[Call, str]:
    """Who is called, and the name under which its answers are known."""
    problem = ""
    if (client_call is None) == (url is None):
        problem = "both client_call and url" if url else "neither client_call nor url"
    elif client_call is not None and not callable(client_call):
        problem = f"client_call={client_call!r}"
    elif client_call is not None and key_from is not None:
        problem = "key_from with client_call, which has its own key"
    elif not (model is None or isinstance(model, str)):
        problem = f"model={model!r}"
    elif model is None and (url is not None or cache is not None):
        problem = "no model, by whose name its answers are asked for and kept apart"
    elif not (key_from is None or isinstance(key_from, str)):
        problem = "key_from, which is no string"
    if problem:
        raise ArgumentError(
            explain_error(
                "it is not clear which model is asked",
                got=problem,
                expected="a function (messages, **settings), or url= and model=",
                instead="pellucid.chat(client.chat.completions.create, model='...', ...), or "
                "pellucid.chat(url='http://localhost:8000/v1', model='...', ...)",
            )
        )
    if client_call is not None:
        return Client(client_call, clock), "client"
    address = checked_url(url)
    return Endpoint(address, key_from, _positive("timeout", timeout, 60.0), clock), address


def _checked_settings(settings: Any, model: str | None) -> dict[str, Any]:
    """What goes into every call: ours, what the user said, and the model."""
    found = {**_SETTINGS, **(settings or {})}
    found = {name: value for name, value in found.items() if value is not None}
    try:
        json.dumps(found, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            explain_error(
                f"these settings cannot be sent: {error}",
                got=f"settings of {', '.join(map(str, found))}",
                expected="strings, numbers, lists and dictionaries",
                instead="settings={'temperature': 0}",
            )
        ) from None
    return found if model is None else found | {"model": model}


def _checked_price(price: Any) -> tuple[float, float] | None:
    if price is None:
        return None
    if not isinstance(price, tuple | list) or len(price) != 2:
        raise ArgumentError(
            explain_error(
                "this is not a price",
                got=f"price={price!r}",
                expected="two numbers: for a million tokens read, and for a million written",
                instead="price=(0.15, 0.60)",
            )
        )
    return real("price", price[0], 0.15), real("price", price[1], 0.6)


def _positive(name: str, value: Any, example: float) -> float:
    found = real(name, value, example)
    if found <= 0 or math.isinf(found):
        raise ArgumentError(
            explain_error(
                f"{name} must be above zero",
                got=f"{name}={value!r}",
                expected="a positive number",
                instead=f"{name}={example:g}",
            )
        )
    return found

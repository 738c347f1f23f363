"""Asking a service many questions: each once, several at a time, within a budget, with patience."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from pellucid._errors import BudgetExceeded, ModelError, explain_error
from pellucid.adapters.chat_answer import Reply
from pellucid.adapters.chat_cache import Cache
from pellucid.adapters.chat_prompt import Messages
from pellucid.adapters.chat_transport import Call, Trouble
from pellucid.adapters.clock import Clock

_FIRST, _LONGEST = 1.0, 60.0  # seconds before the second try, and at most before any
_ASKED = 600.0  # seconds that a service may ask us to wait
_POLL = 0.1


@dataclass(frozen=True)
class Limits:
    """How much, how fast and how often a service is asked."""

    workers: int = 4  # questions at a time
    attempts: int = 6  # of each question
    calls: int | None = None  # at most, failed ones included
    rate: float | None = None  # calls a minute


@dataclass(frozen=True)
class Asked:
    """An answer, and whether one that was stored was damaged."""

    reply: Reply
    damaged: bool = False


@dataclass(eq=False)
class Asker:
    """Knows every answer it got, and asks the cache before the service."""

    call: Call
    service: str  # whom `call` asks; the answers of two services are never mixed up
    settings: Mapping[str, Any]
    cache: Cache | None
    limits: Limits
    clock: Clock
    calls: int = 0  # that were made
    _known: dict[str, Future[Reply]] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _free: float = 0.0  # when the next call may start
    _jitter: random.Random = field(default_factory=random.Random, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_known": {}, "_lock": None, "_jitter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"_lock": threading.Lock(), "_jitter": random.Random()}

    def ask(self, questions: Sequence[Messages]) -> list[Asked]:
        """The answers, in the order of the questions; equal questions are one."""
        keys = [self._key(messages) for messages in questions]
        distinct = dict(zip(keys, questions, strict=True))
        stop = threading.Event()
        with ThreadPoolExecutor(self.limits.workers) as pool:
            jobs = {key: pool.submit(self._ask, key, some, stop) for key, some in distinct.items()}
            try:
                for job in wait(jobs.values(), return_when=FIRST_EXCEPTION).done:
                    job.result()
            finally:  # after an error nothing more is asked, neither for the first time nor again
                stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
        return [jobs[key].result() for key in keys]

    def _key(self, messages: Messages) -> str:
        """The hash of a question: of all that decides the answer, and of nothing else."""
        question = {"service": self.service, "messages": messages, "settings": self.settings}
        return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()

    def _ask(self, key: str, messages: Messages, stop: threading.Event) -> Asked:
        """The answer that this process knows, or that another thread of it is waiting for."""
        with self._lock:
            known = self._known.get(key)
            ours: Future[Reply] = self._known.setdefault(key, Future())
        if known is not None:
            return Asked(known.result())
        try:
            found = self._ask_once(key, messages, stop)
        except BaseException as error:
            with self._lock:
                del self._known[key]
            ours.set_exception(error)
            raise
        ours.set_result(found.reply)
        return found

    def _ask_once(self, key: str, messages: Messages, stop: threading.Event) -> Asked:
        """The answer in the cache, or the one that is paid for and written there before its use."""
        if self.cache is None:
            return Asked(self._paid(key, messages, stop))
        while (found := self.cache.claim(key)).reply is None and not found.ours:
            self.clock.sleep(_POLL)  # another process is asking
        if found.reply is not None:
            return Asked(found.reply)
        try:
            reply = self._paid(key, messages, stop)
            self.cache.write(key, reply)
        except BaseException:
            self.cache.release(key)
            raise
        return Asked(reply, found.damaged)

    def _paid(self, key: str, messages: Messages, stop: threading.Event) -> Reply:
        """Call until there is an answer, waiting twice as long before each further attempt."""
        for attempt in range(1, self.limits.attempts + 1):
            self._take_turn()
            try:
                return Reply.of(self.call(messages, self.settings))
            except Trouble as trouble:
                pause, last = self._pause(attempt, trouble), trouble
            if attempt == self.limits.attempts or pause > _ASKED or stop.is_set():
                break
            if self.cache is not None:
                self.cache.renew(key)
            self.clock.sleep(pause)
            if stop.is_set():
                break
        raise self._given_up(attempt, last, pause) from last.__cause__

    def _pause(self, attempt: int, trouble: Trouble) -> float:
        """What the service asks for, or twice the last pause, spread out over all who wait."""
        if trouble.wait is not None:
            return trouble.wait
        longest = min(_FIRST * 2.0 ** (attempt - 1), _LONGEST)
        return longest * self._jitter.uniform(0.5, 1.0)

    def _take_turn(self) -> None:
        """Count a call, and wait until it may start."""
        with self._lock:
            if self.limits.calls is not None and self.calls >= self.limits.calls:
                raise BudgetExceeded(
                    explain_error(
                        "the budget of paid calls is used up",
                        got=f"calls={self.limits.calls}",
                        expected="at least one call for every text that is new",
                        instead=f"calls={2 * self.limits.calls}; answers in cache= stay known",
                    )
                )
            self.calls += 1
            now = self.clock.now()
            start = max(now, self._free)
            self._free = start + (60 / self.limits.rate if self.limits.rate else 0.0)
        if start > now:
            self.clock.sleep(start - now)

    def _given_up(self, attempt: int, trouble: Trouble, pause: float) -> ModelError:
        waits = f", which asks to wait {pause:.0f} s" if pause > _ASKED else ""
        return ModelError(
            explain_error(
                f"the service gave no answer in {attempt} attempts{waits}",
                got=str(trouble),
                expected="an answer; those that came before it are kept",
                instead="the same line again later; with cache='answers.sqlite' it goes on where "
                "it stopped",
            )
        )

"""How a question reaches a service, and which failures may pass: plain HTTP, or a user's client.

A key is read from the environment for every call and goes into its header; it is kept nowhere, and
struck out of whatever the service sends back.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit

from pellucid._errors import ArgumentError, ModelError, PellucidError, explain_error
from pellucid.adapters.chat_prompt import Messages
from pellucid.adapters.clock import Clock

Call = Callable[[Messages, Mapping[str, Any]], Any]
_LARGEST = 8 * 2**20  # bytes of an answer; one token with its alternatives takes a few thousand
_PASSING = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_ADVICE = {
    400: "settings that this model takes: settings={'max_tokens': None, ...} leaves one out",
    401: "a key that is valid: key_from='NAME' of the environment variable that holds it",
    403: "a key that may use this model",
    404: "the name of the model, and the address up to /v1: url='https://host/v1'",
}


class Trouble(Exception):
    """A failure that may pass; `wait` is what the service asks for, in seconds."""

    def __init__(self, what: str, wait: float | None = None) -> None:
        super().__init__(what)
        self.wait = wait


@dataclass(frozen=True)
class Client:
    """A function (messages, **settings) that somebody else's client library provides."""

    function: Callable[..., Any]
    clock: Clock

    def __call__(self, messages: Messages, settings: Mapping[str, Any]) -> Any:
        """One call; what it raises is told by its status, or by its name where it has none."""
        try:
            return self.function(messages=messages, **settings)
        except PellucidError:
            raise
        except Exception as error:
            names = [one.__name__ for one in type(error).__mro__]
            status = _status(error)
            what = type(error).__name__ + (f", status {status}" if status else "")
            headers = getattr(getattr(error, "response", error), "headers", None) or {}
            lost = any("Timeout" in name or "Connection" in name for name in names)
            if status in _PASSING or (lost and status is None):
                raise Trouble(what, _wait(headers.get("retry-after"), self.clock)) from error
            raise _refusal(what, status) if status else _broken(what) from error


@dataclass(frozen=True)
class Endpoint:
    """An address that takes chat.completions; nothing but Python's own library is needed."""

    url: str
    key_from: str | None
    timeout: float
    clock: Clock

    def __call__(self, messages: Messages, settings: Mapping[str, Any]) -> Any:
        """One call by POST. Redirections are not followed: the key is for this address alone."""
        key = self._key()
        headers = {"Content-Type": "application/json", "User-Agent": "pellucid"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        body = json.dumps({"messages": messages, **settings}).encode()
        request = urllib.request.Request(self.url, body, headers, method="POST")
        opener = urllib.request.build_opener(_NoRedirection)
        try:
            with opener.open(request, timeout=self.timeout) as response:
                text = _struck(self._bounded(response), key)
        except HTTPError as error:
            with error:
                raise self._failed(error, key) from None
        except (OSError, HTTPException) as error:
            what = _struck(str(getattr(error, "reason", error)).encode(), key)
            raise Trouble(f"{type(error).__name__}: {what}") from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise Trouble("an answer that ends early or is no JSON") from None

    def _key(self) -> str | None:
        if self.key_from is None:
            return None
        key = os.environ.get(self.key_from, "").strip()
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise ArgumentError(
                explain_error(
                    "there is no key to call the service with",
                    got=f"key_from={self.key_from!r}, an environment variable that "
                    + ("holds something else" if key else "is not set"),
                    expected="the name of a variable that holds the key, in one line of ASCII",
                    instead=f"export {self.key_from}=... in the shell that starts this program",
                )
            )
        return key

    def _bounded(self, response: Any) -> bytes:
        """The body, as long as neither its size nor the time it takes is out of all proportion."""
        end = self.clock.now() + self.timeout
        body = b""
        while chunk := response.read1(2**16):
            body += chunk
            if len(body) > _LARGEST:
                raise ModelError(
                    explain_error(
                        f"the answer of {self._where} is too large to be an answer",
                        got=f"more than {_LARGEST // 2**20} MiB",
                        expected="one token with its alternatives",
                        instead="url='https://host/v1', where chat.completions are answered",
                    )
                )
            if self.clock.now() > end:
                raise Trouble(f"an answer that took more than {self.timeout:g} s")
        return body

    def _failed(self, error: HTTPError, key: str | None) -> Exception:
        try:
            said = _struck(error.read(2000), key)
        except (OSError, HTTPException):
            said = ""
        said = "".join(c if c.isprintable() else " " for c in said)[:300]
        what = f"status {error.code} from {self._where}: {said}"
        if error.code in _PASSING:
            return Trouble(what, _wait(error.headers.get("retry-after"), self.clock))
        return _refusal(what, error.code)

    @property
    def _where(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


class _NoRedirection(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def checked_url(url: Any) -> str:
    """The address of chat.completions, from what a user gave."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ArgumentError(
            explain_error(
                "this is not the address of a service",
                got="an address with a name or password in it" if "@" in parts.netloc else url,
                expected="http or https, a host and a path; a key comes by key_from=",
                instead="url='http://localhost:8000/v1'",
            )
        )
    path = parts.path.rstrip("/")
    path = path if path.endswith("/chat/completions") else f"{path}/chat/completions"
    return parts._replace(path=path, fragment="").geturl()


def _status(error: Exception) -> int | None:
    """The HTTP status that an exception of a client library carries."""
    found = [getattr(error, name, None) for name in ("status_code", "code", "status")]
    return next((one for one in found if isinstance(one, int)), None)


def _broken(what: str) -> ModelError:
    return ModelError(
        explain_error(
            "the client call failed on its own, and would again",
            got=what,
            expected="a function that is called as f(messages=[...], **settings)",
            instead="find its own error above",
        )
    )


def _refusal(what: str, status: int) -> ModelError:
    return ModelError(
        explain_error(
            "the service refused the question, and would again",
            got=what,
            expected="an answer, or a failure that may pass",
            instead=_ADVICE.get(status, "what the service says is wrong; nothing was asked twice"),
        )
    )


def _struck(body: bytes, key: str | None) -> str:
    """What a service sent, without the key that was sent to it."""
    text = body.decode(errors="replace")
    return text if key is None else text.replace(key, "[key]")


def _wait(asked: Any, clock: Clock) -> float | None:
    """The seconds of a Retry-After header, which holds a number or a date."""
    try:
        return max(0.0, float(asked))
    except (TypeError, ValueError):
        pass
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - clock.now())
    except (TypeError, ValueError):
        return None

"""What all tabs share: the input, the session, and how work is started, told of and stopped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid._errors import InputError, PellucidError, explain_error
from pellucid.adapters.base import Adapter
from pellucid.app.models import Served, Shelf
from pellucid.app.pieces import message, note
from pellucid.app.session import Session, Stopped
from pellucid.viz.markup import Markup

Follower = tuple[Any, Callable[[Adapter], dict[str, Any]]]  # a component, and what a model makes it

LONGEST = 20_000  # characters of a text

_logger = logging.getLogger("pellucid.app")


@dataclass(frozen=True, eq=False)
class Given:
    """What a piece of work begins with."""

    session: Session
    served: Served
    model: str
    raw: Any


@dataclass(frozen=True, eq=False)
class Desk:
    """The shared components of the page, and what lies behind them."""

    gr: Any
    demo: Any
    shelf: Shelf
    folder: Path
    session: Any
    model: Any
    text: Any
    image: Any

    @property
    def input(self) -> list[Any]:
        """The components that say which input of which model is meant."""
        return [self.session, self.model, self.text, self.image]

    def runs(
        self,
        button: Any,
        work: Callable[..., Iterator[Markup]],
        inputs: Sequence[Any],
        result: Any,
    ) -> None:
        """Work on a press of the button; what it yields, and its errors, appear as the result."""

        def run(
            progress: Any, session: Session, model: str, text: str, image: str | None, *rest: Any
        ) -> Iterator[Markup]:
            session.stop.clear()
            served = self.shelf.get(model)
            given = Given(session, served, model, raw_of(served.adapter, text, image))
            yield from work(given, *rest, progress)

        # gradio looks for the progress among the defaults
        def handler(progress: Any = self.gr.Progress(), *given: Any) -> Iterator[Markup]:  # noqa: B008
            yield from told(run, progress, *given)

        button.click(
            handler,
            [*self.input, *inputs],
            result,
            api_visibility="private",
            show_progress_on=result,
        )

    def stops(self, button: Any) -> None:
        """Stop what this person has started, on a press of the button."""
        self._at_once(button, lambda session: session.stop.set())

    def pauses(self, button: Any) -> None:
        """Pause this person's walk, on a press of the button."""
        self._at_once(button, lambda session: session.pause.set())

    def _at_once(self, button: Any, act: Callable[[Session], None]) -> None:
        button.click(
            act, [self.session], None, queue=False, show_progress="hidden", api_visibility="private"
        )


def told(work: Callable[..., Iterator[Markup]], *given: Any) -> Iterator[Markup]:
    """What the work yields; its errors as a person reads them."""
    try:
        yield from work(*given)
    except Stopped:
        yield note("Stopped.")
    except PellucidError as error:
        yield message(error)
    except Exception as error:
        _logger.exception("an error that pellucid did not foresee")
        yield message(_unforeseen(error))


def _unforeseen(error: Exception) -> PellucidError:
    return PellucidError(
        explain_error(
            "something went wrong that pellucid did not foresee",
            got=type(error).__name__,
            expected="a result, or an error that says what to do",
            instead="what is printed where the app was started says where; please report it",
        )
    )


def _checked(text: str) -> str:
    """A text that this machine has time for, whatever the page lets through."""
    if len(text) > LONGEST:
        raise InputError(
            explain_error(
                "this text is too long for the app",
                got=f"{len(text)} characters",
                expected=f"at most {LONGEST}",
                instead="pellucid.explain(model, text, long='windows')",
            )
        )
    return text


def raw_of(adapter: Adapter, text: str | None, image: str | None) -> str:
    """The text or the path of the image, whichever the model reads."""
    if adapter.kind == "text":
        return _checked(text or "")
    if image is None:
        raise InputError(
            explain_error(
                "there is no image",
                got="an empty place",
                expected=f"an image: {adapter.name} reads images",
                instead="drop one on the page, or click on an example",
            )
        )
    return image

"""What a chat model is asked: a template, with the text inserted once and never read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pellucid._errors import ArgumentError, explain_error

PLACE = "{text}"
Messages = list[dict[str, str]]


@dataclass(frozen=True)
class Prompt:
    """The messages around a text: what the system says, examples with their answers, the question.

    The template is cut at its one place for the text, so braces mean nothing anywhere else.
    """

    template: str
    system: str | None = None
    examples: tuple[tuple[str, str], ...] = ()

    def messages(self, text: str) -> Messages:
        """The conversation that ends with the question about this text."""
        found = [] if self.system is None else [{"role": "system", "content": self.system}]
        for example, answer in self.examples:
            found.append({"role": "user", "content": self._filled(example)})
            found.append({"role": "assistant", "content": answer})
        return [*found, {"role": "user", "content": self._filled(text)}]

    def _filled(self, text: str) -> str:
        before, after = self.template.split(PLACE)
        return before + text + after


def checked_prompt(template: Any, system: Any, examples: Sequence[Any]) -> Prompt:
    """A prompt made of what a user gave."""
    problem = ""
    if not isinstance(template, str) or template.count(PLACE) != 1:
        problem = f"prompt={template!r}"
    elif not (system is None or isinstance(system, str)):
        problem = f"system={system!r}"
    elif not all(_is_example(one) for one in examples):
        problem = f"examples={examples!r}"
    if problem:
        raise ArgumentError(
            explain_error(
                "this is not a prompt that a text can be put into",
                got=problem,
                expected="a string with {text} in one place; examples are pairs of a text and the "
                "answer that is due",
                instead="prompt='Is this review positive or negative? {text}'",
            )
        )
    return Prompt(template, system, tuple((text, answer) for text, answer in examples))


def _is_example(one: Any) -> bool:
    pair = isinstance(one, tuple | list) and len(one) == 2
    return pair and all(isinstance(part, str) for part in one)

"""What is typed at the command line as what the API takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.adapters.base import Adapter


def gathered(verb: str, inputs: Sequence[str], pair: str | None, file: Path | None) -> list[Any]:
    """All inputs: those typed, and the lines of the file; each paired where a pair is given."""
    from pellucid import InputError
    from pellucid._errors import explain_error

    raw = list(inputs)
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                explain_error(
                    "the file of texts cannot be read",
                    got=f"--file {file} ({error})",
                    expected="a UTF-8 text file with one text a line",
                    instead="--file texts.txt",
                )
            ) from None
        raw += [line for line in lines if line.strip()]
    if not raw:
        raise InputError(
            explain_error(
                f"there is nothing to {verb}",
                got="no INPUT and no --file",
                expected="texts, paths of images, or a file of texts",
                instead=f"pellucid {verb} 'a fine film' --model pellucid/reviews-bert",
            )
        )
    return raw if pair is None else [(one, pair) for one in raw]


def check_kinds(verb: str, raw: Sequence[Any], adapter: Adapter) -> None:
    """A picture given to a model of texts is a mistake, not a very short text."""
    from pellucid import InputError
    from pellucid._errors import explain_error
    from pellucid._images import looks_like_image

    for one in raw:
        text = one if isinstance(one, str) else one[0]
        if adapter.kind == "text" and looks_like_image(text) and Path(text).is_file():
            raise InputError(
                explain_error(
                    "this model reads texts, not images",
                    got=f"{text}, the path of an image, for {adapter.name}",
                    expected="a text",
                    instead=f"pellucid {verb} {text} --model pellucid/digits-vit",
                )
            )


def class_of(adapter: Adapter, label: str | None) -> str | int | None:
    """A label is a name first; only where no class has that name is it a number."""
    if label is not None and label not in adapter.labels and label.lstrip("-").isdigit():
        return int(label)
    return label


def named_value(setting: str, example: str, option: str = "--set") -> tuple[str, Any]:
    """The two sides of NAME=VALUE."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error

    name, equals, value = setting.partition("=")
    if not equals:
        raise ArgumentError(
            explain_error(
                "a parameter has a name and a value",
                got=f"{option} {setting}",
                expected=f"{option} NAME=VALUE",
                instead=f"{option} {example}",
            )
        )
    return name, value_of(value)


def value_of(written: str) -> Any:
    """A number, true, false, null or a list as JSON has it; anything else is a string."""
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        return written

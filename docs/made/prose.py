"""Docstrings as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any, cast

from pellucid._references import REFERENCES

MISLEADS = "It misleads "
_CODE = re.compile(r"(``.+?``|`.+?`)", re.DOTALL)
_MARKUP = re.compile(r"([*_|\[\]])")
_HYPHENATED = re.compile(r"(?<=\w-)\n(?=\w)")


def prose(text: str) -> str:
    """A docstring's text: what stands in backticks is code, and nothing else is markup."""
    parts = _CODE.split(_HYPHENATED.sub("", text))
    return "".join(part if i % 2 else _escaped(part) for i, part in enumerate(parts))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text.replace("<", "&lt;"))


def cell(text: str) -> str:
    """Prose for a cell of a table."""
    return " ".join(prose(text).split())


def summary_of(thing: Any) -> str:
    """The first line of a docstring, or of its first sentence."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0]


def body_of(thing: Any) -> str:
    """What follows the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[2]


def module_of(function: Any) -> tuple[str, str, str]:
    """The title of the module that a function is in, what it says, and when that misleads."""
    module = inspect.getmodule(function)
    title, _, body = (inspect.getdoc(module) or "").partition("\n\n")
    paragraphs = body.split("\n\n") if body else []
    warning = [one for one in paragraphs if one.startswith(MISLEADS)]
    rest = [one for one in paragraphs if not one.startswith(MISLEADS)]
    return title, "\n\n".join(rest), "\n\n".join(warning)


def sources(cite: tuple[str, ...]) -> str:
    """The works that are cited, one a line."""
    return "\n".join(f"- {prose(REFERENCES[key])}" for key in cite) or "- None: it is a control."


def defaults_of(function: Any, skipped: int) -> str:
    """The parameters of a method or metric with their defaults, as a line of Python."""
    found = list(inspect.signature(function).parameters.values())[skipped:]
    named = [p for p in found if p.kind is not inspect.Parameter.VAR_KEYWORD]
    return ", ".join(f"{p.name}={p.default!r}" for p in named)


def presets_of(presets: Any) -> str:
    """The named sets of parameters."""
    settings = {
        name: ", ".join(f"{key}={value!r}" for key, value in one.items()) or "the defaults"
        for name, one in presets.items()
    }
    rows = [f"| `{name}` | `{what}` |" for name, what in settings.items()]
    return "\n".join(["| preset | stands for |", "|---|---|", *rows]) if rows else ""


def source_of(function: Any, title: str) -> str:
    """The code of a function without what is told elsewhere, as a block that can be closed."""
    lines = inspect.getsource(function).rstrip().splitlines()
    node = cast(ast.FunctionDef, ast.parse("\n".join(lines)).body[0])
    told = node.body[0]  # the docstring
    kept = lines[node.lineno - 1 : told.lineno - 1] + lines[cast(int, told.end_lineno) :]
    code = "\n".join(f"    {line}".rstrip() for line in kept)
    return f'???+ example "{title}"\n\n    ```python\n{code}\n    ```'

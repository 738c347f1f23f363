"""The blocks of a page: what is shown is what runs.

A block of Python runs, all those of a page in one namespace, and a block of text right after it is
what it prints. Of a block of the console, the commands that begin with ``pellucid`` run. A block
that cannot run says why in its title: ```` ```python title="Not run: needs captum" ````. A block of
another language whose title is the name of a file is that file, for what follows.
"""

from __future__ import annotations

import io
import math
import os
import re
import shlex
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from unittest.mock import patch

_FENCE = re.compile(
    r'^```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?[ ]*\n(?P<code>.*?)^```$',
    re.DOTALL | re.MULTILINE,
)
_NOT_RUN = "Not run: "
_NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int  # where its code begins
    language: str
    reason: str  # why it is not run; empty where it is
    code: str
    file: str  # the name under which what follows finds it; empty of what runs
    printed: str | None = None  # what the page says that it prints

    @property
    def commands(self) -> list[str]:
        """The commands of a block of the console, each on one line."""
        return self.code.replace("\\\n", " ").splitlines()


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page, in order; a block of text belongs to the Python before it."""
    text = page.read_text(encoding="utf-8")
    fences = list(_FENCE.finditer(text))
    found: list[Block] = []
    for fence, following in zip_longest(fences, fences[1:]):
        line = text.count("\n", 0, fence.start("code"))
        printed = None
        if following and following["language"] == "text" and fence["language"] == "python":
            between = text[fence.end() : following.start()]
            printed = following["code"] if not between.strip() else None
        title = fence["title"] or ""
        reason = title.removeprefix(_NOT_RUN) if title.startswith(_NOT_RUN) else ""
        file = "" if reason else title
        found.append(Block(page, line, fence["language"], reason, fence["code"], file, printed))
    return found


def run_page(page: Path, folder: Path) -> int:
    """Run what a page shows, in a folder; says how many blocks that were."""
    names: dict[str, object] = {"__name__": "__page__"}
    done = 0
    for block in blocks_of(page):
        if block.file:
            (folder / block.file).write_text(block.code, encoding="utf-8")
        if block.reason or block.language not in ("python", "console"):
            continue
        done += 1
        if block.language == "python":
            _run_python(block, folder, names)
        else:
            _run_commands(block, folder)
    return done


def _run_python(block: Block, folder: Path, names: dict[str, object]) -> None:
    where = f"{block.page.name}, line {block.line + 1}"
    code = compile("\n" * block.line + block.code, str(block.page), "exec", dont_inherit=True)
    printed = io.StringIO()
    with chdir(folder), redirect_stdout(printed):
        exec(code, names)
    if block.printed is not None:
        assert same(printed.getvalue(), block.printed), f"{where}: it prints\n{printed.getvalue()}"


def _run_commands(block: Block, folder: Path) -> None:
    from pellucid.cli import main

    for command in block.commands:
        if not command.startswith("pellucid "):
            continue
        arguments = shlex.split(command, comments=True)
        wide = patch.dict(os.environ, {"COLUMNS": "200"})
        named = patch.object(sys, "argv", arguments)
        with chdir(folder), named, wide, redirect_stdout(io.StringIO()):
            code = _left_with(main)
        assert not code, f"{block.page.name}: {command}"


def _left_with(main: Callable[[], None]) -> object:
    """The exit status of a command that leaves the interpreter when it is done."""
    try:
        main()
    except SystemExit as stop:
        return stop.code
    return None


def same(printed: str, shown: str) -> bool:
    """Whether two outputs are the same, but for the last digit shown of every number."""
    ours, theirs = printed.split(), shown.split()
    if _NUMBER.sub("#", " ".join(ours)) != _NUMBER.sub("#", " ".join(theirs)):
        return False
    pairs = zip(_NUMBER.findall(" ".join(ours)), _NUMBER.findall(" ".join(theirs)), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=0, abs_tol=_unit(b)) for a, b in pairs)


def _unit(number: str) -> float:
    """One in the last digit that is shown; nothing for a whole number."""
    mantissa, _, exponent = number.partition("e")
    digits = len(mantissa.partition(".")[2])
    return 1.01 * 10.0 ** (int(exponent or 0) - digits) if digits or exponent else 0.0

"""What a walk of the command line leaves: a table, a page, and files to load again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pellucid.cli._files import check_free, check_two, make_folder

if TYPE_CHECKING:
    from pellucid import Trajectory
    from pellucid._decoded import Decoded
    from pellucid.adapters.base import Adapter

_WORDS = 32  # characters of an input
USING = {"text": ("nearest", "mlm", "head"), "image": ("inverse", "pixels")}


@dataclass(frozen=True)
class Outputs:
    """The page, and the folder of trajectories where one was asked for."""

    page: Path | None
    files: tuple[Path, ...]
    force: bool
    quiet: bool  # standard output is for numbers

    @classmethod
    def at(cls, out: Path | None, json_: Path | None, walks: int, force: bool) -> Outputs:
        """Where `--out` says, which must be free: with .html a page, otherwise a folder."""
        page, files = out, tuple[Path, ...]()
        if out is not None and out.suffix.lower() not in (".html", ".htm"):
            page = out / "report.html"
            files = tuple(out / f"walk-{i + 1:0{len(str(walks))}}.pellucid" for i in range(walks))
            make_folder(out, "--out walks")
        check_two(page, json_)
        for path in (page, json_, *files):
            check_free(path, force)
        return cls(page, files, force, json_ is not None and str(json_) == "-")

    def save(self, found: Sequence[Trajectory]) -> None:
        """One file a walk."""
        for path, trajectory in zip(self.files, found, strict=False):
            trajectory.save(path, overwrite=self.force)
        if self.files:
            where = f"{self.files[0].parent}, {len(self.files)} in all"
            typer.echo(f"trajectories: {where}", err=self.quiet)

    def write(self, found: Sequence[Any]) -> None:
        """One page with everything on it."""
        from pellucid import report

        if self.page is not None:
            written = report(found, self.page, overwrite=self.force)
            typer.echo(f"report: {written}", err=self.quiet)


@dataclass(frozen=True)
class Decoding:
    """How the points become inputs again; nothing is asked for by default."""

    options: dict[str, Any]

    @classmethod
    def by(cls, adapter: Adapter, using: str | None, mlm: str | None, **options: Any) -> Decoding:
        """By these names, which are checked before anything walks."""
        from pellucid import ArgumentError
        from pellucid._errors import explain_error, unknown_name
        from pellucid.cli._common import load_model

        names = USING[adapter.kind]
        if using is not None and using not in names:
            raise ArgumentError(unknown_name("way of decoding:", using, names, write="--using {}"))
        itself = adapter.task in ("masked", "causal")  # which can say what its states are
        missing = mlm is None and using in ("mlm", "head") and not itself
        idle = mlm is not None and using not in (None, "mlm", "head")
        if missing or idle or (mlm and adapter.kind == "image"):
            raise ArgumentError(
                explain_error(
                    "a masked language model decodes texts, by 'mlm' or 'head', and only it does",
                    got=f"--using {using} --mlm {mlm} for a model that reads {adapter.kind}s",
                    expected="--mlm with --using mlm or head, or neither",
                    instead=f"--using {names[0]}",
                )
            )
        asked: dict[str, Any] = {} if using is None else {"using": using}
        return cls(asked | ({} if mlm is None else {"mlm": load_model(mlm, **options)}))

    def of(self, trajectory: Trajectory) -> Decoded | None:
        """The points as inputs; where nobody asked, not every walk must have such."""
        from pellucid import PellucidError

        try:
            return trajectory.decode(**self.options)
        except PellucidError as error:
            if self.options:
                raise
            typer.echo(f"not decoded: {str(error).splitlines()[0]}", err=True)
            return None


def print_walks(found: Sequence[Trajectory], names: Sequence[str]) -> None:
    """One line a walk, and a sentence for each that did not do what it was asked to."""
    from pellucid.cli._common import print_table
    from pellucid.viz.markup import visible

    columns = ["input", "start", "end", "drift", "distance", "steps", "outcome"]
    print_table(columns, [_row(*one) for one in zip(found, names, strict=True)])
    for name, one in zip(names, found, strict=True):
        for line in (*([] if one.completed else [one.outcome]), *one.notes):
            typer.echo(visible(f"{name}: {line}"))


def print_decoded(decoded: Sequence[Decoded | None], names: Sequence[str]) -> None:
    """What the last points look like, and how often the model agrees that they do."""
    from pellucid.cli._common import print_table

    rows = [
        [name, seen.using, f"{int(seen.agrees.sum())} of {len(seen.agrees)}", *seen.texts[-1:]]
        for seen, name in zip(decoded, names, strict=True)
        if seen is not None
    ]
    if rows:
        print_table(["input", "decoded by", "predicted as its point", "last point"], rows)


def names_of(raw: Sequence[Any], repeats: int) -> list[str]:
    """A few words for every walk: the text, or the file's name."""
    from pellucid._images import looks_like_image

    found = []
    for one in raw:
        text = " / ".join(one) if isinstance(one, tuple) else str(one)
        text = Path(text).name if looks_like_image(text) else text
        found.append(text if len(text) <= _WORDS else f"{text[: _WORDS - 1]}…")
    if repeats == 1:
        return found
    return [f"{name} ({i + 1})" for name in found for i in range(repeats)]


def _row(walk: Trajectory, name: str) -> list[str]:
    return [
        name,
        _predicted(walk, 0),
        _predicted(walk, -1),
        f"{float(walk.drift.max()):.1e}",
        f"{float(walk.displacement[-1]):.3g}",
        str(walk.steps),
        "completed" if walk.completed else "stopped",
    ]


def _predicted(walk: Trajectory, at: int) -> str:
    """The likeliest class and its probability; of a regression, its value."""
    name, shown = walk.predicted[at], walk.probabilities[at]
    if len(walk.labels) == 1:
        return f"{float(shown[0]):.4g}"
    if name not in walk.labels:
        return name
    return f"{name} {float(shown[walk.labels.index(name)]):.1%}"

"""`pellucid explain`: inputs and a model in, explanations on the terminal, as a page, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pellucid import Explanation
    from pellucid.adapters.base import Adapter

Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT...", help="Texts, or paths of images.", show_default=False),
]
Model = Annotated[
    str,
    typer.Option("--model", "-m", help="A folder, a hub name, or pellucid/<name>."),
]
Methods = Annotated[
    list[str], typer.Option("--method", help="A method; may be given several times.")
]
TargetLabel = Annotated[
    str | None, typer.Option("--target", help="A class by name or number. Default: predicted.")
]
Pair = Annotated[str | None, typer.Option("--pair", help="The second text of a pair.")]
TextFile = Annotated[
    Path | None, typer.Option("--file", help="A file with one text a line, besides the inputs.")
]
Seed = Annotated[int, typer.Option("--seed", help="Decides all randomness.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the methods.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write one HTML page with everything on it.")
]
Json = Annotated[
    Path | None, typer.Option("--json", help="Write the numbers as JSON ('-': to standard output).")
]
Long = Annotated[
    str, typer.Option("--long", help="Texts that do not fit: refuse, truncate or windows.")
]
Device = Annotated[str | None, typer.Option("--device", help="Where the model runs, as 'cuda'.")]
Trust = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the model.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]


def explain(
    model: Model,
    inputs: Inputs = None,
    method: Methods = ["gradient_x_input"],  # noqa: B006  # typer copies it
    target: TargetLabel = None,
    pair: Pair = None,
    file: TextFile = None,
    seed: Seed = 0,
    set_: Settings = [],  # noqa: B006
    out: Out = None,
    json_: Json = None,
    long: Long = "refuse",
    device: Device = None,
    trust_remote_code: Trust = False,
    force: Force = False,
) -> None:
    """Explain texts or images: what in them speaks for the model's prediction."""
    from pellucid import report
    from pellucid.cli._common import load_model

    raw = _gathered(inputs or [], pair, file)
    _check_two(out, json_)
    for path in (out, json_):
        _check_free(path, force)
    settings = _settings_by_method(method, set_)
    adapter = load_model(model, device=device, trust_remote_code=trust_remote_code)
    _check_kinds(raw, adapter)
    found: list[Explanation] = []
    for name in method:
        found += _explained(adapter, raw, name, target, seed, long, settings[name])
    if json_ is None or str(json_) != "-":
        _print(found)
    if json_ is not None:
        _write_json(found, json_, force)
    if out is not None:
        typer.echo(f"report: {report(found, out, overwrite=force)}")


def _explained(
    adapter: Adapter,
    raw: Sequence[Any],
    method: str,
    target: str | None,
    seed: int,
    long: Any,
    params: dict[str, Any],
) -> list[Explanation]:
    from pellucid import explain as explain_inputs

    found: list[Explanation] = explain_inputs(
        adapter,
        list(raw),
        method=method,
        target=_target(adapter, target),
        seed=seed,
        long=long,
        **params,
    )
    return found


def _gathered(inputs: Sequence[str], pair: str | None, file: Path | None) -> list[Any]:
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
                "there is nothing to explain",
                got="no INPUT and no --file",
                expected="texts, paths of images, or a file of texts",
                instead="pellucid explain 'a fine film' --model pellucid/reviews-bert",
            )
        )
    return raw if pair is None else [(one, pair) for one in raw]


def _check_two(out: Path | None, json_: Path | None) -> None:
    """Two outputs in one file would leave the second alone."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error

    if out is not None and json_ is not None and out.resolve() == json_.resolve():
        raise ArgumentError(
            explain_error(
                "the page and the numbers cannot share a file",
                got=f"--out {out} --json {json_}",
                expected="two paths",
                instead=f"--json {out.with_suffix('.json')}",
            )
        )


def _check_free(path: Path | None, force: bool) -> None:
    """Refuse an existing output before any work is done."""
    from pellucid import StoreError
    from pellucid._errors import explain_error

    if path is None or str(path) == "-":
        return
    if path.exists() and not force:
        raise StoreError(
            explain_error(
                "the file exists already",
                got=str(path),
                expected="a new path",
                instead="--force to overwrite it",
            )
        )
    if not path.resolve().parent.is_dir():
        raise StoreError(
            explain_error(
                "there is no such folder",
                got=str(path.resolve().parent),
                expected="a path in an existing folder",
                instead=f"mkdir -p {path.parent}",
            )
        )


def _check_kinds(raw: Sequence[Any], adapter: Adapter) -> None:
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
                    instead=f"pellucid explain {text} --model pellucid/digits-vit",
                )
            )


def _target(adapter: Adapter, label: str | None) -> str | int | None:
    """A label is a name first; only where no class has that name is it a number."""
    if label is not None and label not in adapter.labels and label.lstrip("-").isdigit():
        return int(label)
    return label


def _settings_by_method(methods: Sequence[str], given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Each method's own parameters among those given; one that no method knows is an error."""
    from pellucid import ArgumentError
    from pellucid._errors import explain_error, unknown_name
    from pellucid._spec import bound_parameters
    from pellucid.methods import METHODS

    for name in methods:
        if name not in METHODS:
            raise ArgumentError(unknown_name("method", name, METHODS, write="--method {}"))
    known = {name: bound_parameters(METHODS[name], {}) for name in methods}
    found: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise ArgumentError(
                explain_error(
                    "a parameter has a name and a value",
                    got=f"--set {setting}",
                    expected="--set NAME=VALUE",
                    instead="--set discard=0.9",
                )
            )
        preset = name == "preset"  # a name for several parameters
        takers = [m for m in methods if name in known[m] or (preset and METHODS[m].presets)]
        if not takers:
            names = {parameter for parameters in known.values() for parameter in parameters}
            raise ArgumentError(
                unknown_name(
                    f"parameter of {', '.join(methods)}:", name, names, write="--set {}=..."
                )
            )
        for method in takers:
            found[method][name] = _value(value)
    return found


def _value(written: str) -> Any:
    """A number, true, false, null or a list as JSON has it; anything else is a string."""
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        return written


def _print(found: Sequence[Explanation]) -> None:
    for number, explanation in enumerate(found):
        if number:
            typer.echo()
        explanation.show()


def _write_json(found: Sequence[Explanation], path: Path, force: bool) -> None:
    from pellucid._store import replacing

    document = json.dumps([one.to_dict() for one in found], ensure_ascii=False, indent=2)
    if str(path) == "-":
        sys.stdout.write(document + "\n")
        return
    with replacing(path, overwrite=force) as temporary:
        temporary.write_text(document + "\n", encoding="utf-8")
    typer.echo(f"numbers: {path}")

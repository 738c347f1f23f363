"""`pellucid explain`: inputs and a model in, explanations on the terminal, as a page, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli._files import check_free, check_two, write_json
from pellucid.cli._inputs import check_kinds, class_of, gathered, named_value
from pellucid.cli._options import (
    Device,
    Force,
    Inputs,
    Json,
    Model,
    Pair,
    Seed,
    TextFile,
    Trust,
)

if TYPE_CHECKING:
    from pellucid import Explanation
    from pellucid.adapters.base import Adapter

Methods = Annotated[
    list[str], typer.Option("--method", help="A method; may be given several times.")
]
TargetLabel = Annotated[
    str | None, typer.Option("--target", help="A class by name or number. Default: predicted.")
]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the methods.")
]
Long = Annotated[
    str, typer.Option("--long", help="Texts that do not fit: refuse, truncate or windows.")
]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write one HTML page with everything on it.")
]


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

    raw = gathered("explain", inputs or [], pair, file)
    check_two(out, json_)
    for path in (out, json_):
        check_free(path, force)
    settings = _settings_by_method(method, set_)
    adapter = load_model(model, device=device, trust_remote_code=trust_remote_code)
    check_kinds("explain", raw, adapter)
    found: list[Explanation] = []
    for name in method:
        found += _explained(adapter, raw, name, target, seed, long, settings[name])
    quiet = json_ is not None and str(json_) == "-"  # standard output is for numbers
    if not quiet:
        _print(found)
    if json_ is not None:
        write_json(found, json_, force)
    if out is not None:
        typer.echo(f"report: {report(found, out, overwrite=force)}", err=quiet)


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
        target=class_of(adapter, target),
        seed=seed,
        long=long,
        **params,
    )
    return found


def _settings_by_method(methods: Sequence[str], given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Each method's own parameters among those given; one that no method knows is an error."""
    from pellucid import ArgumentError
    from pellucid._errors import unknown_name
    from pellucid._spec import bound_parameters
    from pellucid.methods import METHODS

    for name in methods:
        if name not in METHODS:
            raise ArgumentError(unknown_name("method", name, METHODS, write="--method {}"))
    known = {name: bound_parameters(METHODS[name], {}) for name in methods}
    found: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for setting in given:
        name, value = named_value(setting, "discard=0.9")
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
            found[method][name] = value
    return found


def _print(found: Sequence[Explanation]) -> None:
    for number, explanation in enumerate(found):
        if number:
            typer.echo()
        explanation.show()

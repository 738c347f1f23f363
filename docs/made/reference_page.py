"""The reference: every public name with its signature and docstring, by what it is for."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from prose import prose, summary_of

import pellucid

GROUPS = {
    "Models": "load adapt blackbox chat Resize",
    "Explaining": "explain Target Explanation report method Case Needs Attribution "
    "SlalomExplanation",
    "Measuring": "evaluate measure measure_walk Table metric Measured walk_metric "
    "class_trend agreement",
    "Walking": "explore Trajectory metric_at feasible Output Top Above Rectangle",
    "What there is": "list_methods list_metrics list_models",
    "Errors": "PellucidError ArgumentError InputError ModelError NumericalError StoreError "
    "UnsupportedCombination BudgetExceeded",
}
SUBMODULES = ("data", "bench")
_HEAD = """# Reference

What `import pellucid` offers. Names are imported when they are first used. Everything here is
written from the code.
"""


def page() -> str:
    """The whole page."""
    public = [name for name in pellucid.__all__ if name != "__version__"]
    grouped = {name for names in GROUPS.values() for name in names.split()}
    groups = GROUPS | {"More": " ".join(name for name in public if name not in grouped)}
    parts = [_HEAD]
    for title, names in groups.items():
        own = [name for name in names.split() if name in public]
        parts += [f"## {title}"] * bool(own)
        parts += [_entry(name, getattr(pellucid, name)) for name in own]
    for name in SUBMODULES:
        module = import_module(f"pellucid.{name}")
        parts += [f"## pellucid.{name}", prose(summary_of(module))]
        parts += [_entry(f"{name}.{one}", getattr(module, one)) for one in module.__all__]
    return "\n\n".join(parts) + "\n"


def _entry(name: str, thing: Any) -> str:
    parts = [f"### {name}", _signature(name, thing), prose(inspect.getdoc(thing) or "")]
    if inspect.isclass(thing):
        parts += [_member(key, member) for key, member in _members(thing)]
    return "\n\n".join(part for part in parts if part)


def _signature(name: str, thing: Any) -> str:
    """A call with every parameter, folded where it is long; errors are not called."""
    if inspect.isclass(thing) and (issubclass(thing, Exception) or thing is pellucid.Needs):
        return ""
    signature = inspect.signature(thing)
    found = [_parameter(p) for p in signature.parameters.values() if p.name != "self"]
    stars = _with_stars(signature, found)
    line = f"{name}({', '.join(stars)})"
    if len(line) > 88:
        line = f"{name}(\n    " + ",\n    ".join(stars) + ",\n)"
    return f"```python\n{line}\n```"


def _parameter(parameter: inspect.Parameter) -> str:
    """A parameter as it is written; its annotation is a string already."""
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else stars
    shown = f"{stars}{parameter.name}"
    if parameter.annotation is not parameter.empty:
        shown += f": {parameter.annotation}"
    return shown if parameter.default is parameter.empty else f"{shown} = {parameter.default!r}"


def _with_stars(signature: inspect.Signature, shown: list[str]) -> list[str]:
    """The star that separates what must be named."""
    kinds = [p.kind for p in signature.parameters.values() if p.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        at = kinds.index(inspect.Parameter.KEYWORD_ONLY)
        return [*shown[:at], "*", *shown[at:]]
    return shown


def _members(thing: type) -> list[tuple[str, Any]]:
    """Its own public methods and properties that say what they do."""
    return [
        (key, member)
        for key, member in vars(thing).items()
        if not key.startswith("_")
        and (callable(member) or isinstance(member, property | classmethod))
        and inspect.getdoc(member)
        and not inspect.isclass(member)
    ]


def _member(key: str, member: Any) -> str:
    text = " ".join(prose(inspect.getdoc(member) or "").split("\n\n")[0].split())
    if isinstance(member, property):
        return f"- **`.{key}`**: {text}"
    function = member.__func__ if isinstance(member, classmethod) else member
    names = list(inspect.signature(function).parameters.values())[1:]
    shown = ", ".join(str(p.replace(annotation=p.empty)) for p in names)
    return f"- **`.{key}({shown})`**: {text}"

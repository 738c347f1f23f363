"""What stands under the numbers: notes for the reader, and where the numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid._results import Provenance
from pellucid.viz.markup import Markup, element, join
from pellucid.viz.wording import number


def notes(found: Sequence[str]) -> Markup:
    """Sentences for the reader, one below the other."""
    if not found:
        return Markup()
    return element("ul", *(element("li", note, dir="auto") for note in found), class_="notes")


def provenance(source: Provenance) -> Markup:
    """The model, the machine, the versions and the cost."""
    rows = {
        "model": source.model,
        "weights": source.weights,
        "dtype": source.dtype,
        "device": source.device,
        "seed": str(source.seed),
        "time": f"{number(source.seconds)} s",
        "passes": f"{source.forwards} forward, {source.backwards} backward",
        "versions": ", ".join(f"{name} {version}" for name, version in source.versions.items()),
        "created": source.created,
    }
    listed = [join(element("dt", name), element("dd", value)) for name, value in rows.items()]
    return element("details", element("summary", "Provenance"), element("dl", *listed))

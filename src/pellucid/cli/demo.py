"""`pellucid demo`: a bundled digit and a bundled review, explained by everything that fits."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pellucid import Explanation

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the page is written.")]


def demo(out: Out = Path("pellucid-demo")) -> None:
    """Explain a bundled digit and a bundled review, and write one HTML page."""
    from pellucid import report
    from pellucid.cli._common import print_table
    from pellucid.cli._files import make_folder
    from pellucid.models import sample_images, sample_texts

    make_folder(out, "--out pellucid-demo")
    digit = next(path for path in sample_images() if "hard" in path.stem)
    text = next(text for text in sample_texts() if "but" in text)
    found: list[Explanation] = []
    rows: list[list[str]] = []
    for model, raw, metric in (
        ("pellucid/digits-vit", digit, "deletion"),
        ("pellucid/reviews-bert", text, "text_deletion"),
    ):
        for explanation, measurement in _explained(model, raw, metric):
            found.append(explanation)
            rows.append(_row(explanation, measurement))
    path = report(found, out / "report.html", title="pellucid: a first look", overwrite=True)
    print_table(["input", "method", "explains", "largest scores", "deletion", "ms"], rows)
    typer.echo("deletion: of a digit, lower is better; of a text, higher is better")
    typer.echo(f"report: {path.resolve()}")


def _explained(name: str, raw: Any, metric: str) -> list[tuple[Explanation, Any]]:
    """The input explained by every method that fits, each measured."""
    from pellucid import explain, list_methods, measure
    from pellucid.cli._common import load_model

    model = load_model(name)
    found = [explain(model, raw, method=entry.name) for entry in list_methods(model) if entry.fits]
    return [(one, measure(model, one, metric=metric)) for one in found]


def _row(explanation: Explanation, measurement: Any) -> list[str]:
    what = "review" if explanation.kind == "text" else "digit"
    value = measurement.skipped if measurement.value is None else f"{measurement.value:.3f}"
    probability = explanation.prediction.get(explanation.label, float("nan"))
    return [
        what,
        explanation.method,
        f"{explanation.label} ({probability:.1%})",
        ", ".join(name for name, _ in explanation.top(3)),
        value,
        f"{1000 * explanation.provenance.seconds:.1f}",
    ]

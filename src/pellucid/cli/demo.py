"""`pellucid demo`: a bundled digit and a bundled review, explained and walked away from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pellucid import Explanation
    from pellucid.adapters.base import Adapter

METHODS = (
    *("vtranm", "transformer_mm", "rollout", "tis"),
    *("attn_lrp", "gradient_x_input", "occlusion", "pullback"),
)
_STEPS = 100
Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the page is written.")]


def demo(out: Out = Path("pellucid-demo")) -> None:
    """Explain a bundled digit and a bundled review, walk inside their classes, write one page."""
    from pellucid import explore, report
    from pellucid.cli._common import load_model, print_table
    from pellucid.cli._files import make_folder
    from pellucid.models import sample_images, sample_texts

    make_folder(out, "--out pellucid-demo")
    digit = next(path for path in sample_images() if "hard" in path.stem)
    text = next(text for text in sample_texts() if "but" in text)
    inputs: list[tuple[str, Any, str, dict[str, Any]]] = [  # model, input, metric, rules of a walk
        ("pellucid/digits-vit", digit, "deletion", {"space": "pixels"}),
        ("pellucid/reviews-bert", text, "text_deletion", {"within": "bounds"}),
    ]
    found: list[Any] = []
    rows: list[list[str]] = []
    for name, raw, metric, rules in inputs:
        model = load_model(name)
        for explanation, measurement in _explained(model, raw, metric):
            found.append(explanation)
            rows.append(_row(explanation, measurement))
        found.append(explore(model, raw, steps=_STEPS, save_every=10, **rules))
    path = report(found, out / "report.html", title="pellucid: a first look", overwrite=True)
    print_table(["input", "method", "explains", "largest scores", "deletion", "ms"], rows)
    typer.echo("deletion: of a digit, lower is better; of a text, higher is better")
    typer.echo(f"report: {path.resolve()}")


def _explained(model: Adapter, raw: Any, metric: str) -> list[tuple[Explanation, Any]]:
    """The input explained by a few methods of different kinds, each measured."""
    from pellucid import explain, measure

    found = [explain(model, raw, method=method) for method in METHODS]
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

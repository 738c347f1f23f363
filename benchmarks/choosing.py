"""Every method on what the bundled models have not seen: how faithful, and how dear.

    python benchmarks/choosing.py digits     # writes docs/results/digits.json
    python benchmarks/choosing.py reviews    # writes docs/results/reviews.json

Needs MNIST's test digits (`python training/fetch.py`), or the sentences of the measuring folder.
The page that helps to choose a method is made of what is stored. One record a method, written as
it comes: a run that was stopped goes on.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _data import FOLDER, digits

import pellucid
from pellucid.methods import METHODS

RESULTS = Path(__file__).parent.parent / "docs" / "results"
COUNT, BATCH, SEED = 50, 25, 0
STEPS = {"steps": 28, "space": "normalized"}
METRICS: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "digits": (
        ("insertion", STEPS),
        ("deletion", STEPS),
        ("insertion_minus_deletion", STEPS),
        ("sparseness", {}),
    ),
    "reviews": (
        ("comprehensiveness", {}),
        ("sufficiency", {}),
        ("text_deletion", {}),
        ("text_insertion", {}),
    ),
}
FEWER = {"rise": {"masks": 1000}, "kernel_shap": {"samples": 500}}


def sentences(count: int, seed: int) -> list[str]:
    """Sentences of another source than the reviews that the model was trained on."""
    found = pellucid.data.sentence_polarity(FOLDER / "data" / "sentence_polarity.parquet")
    chosen = np.random.default_rng(seed).choice(len(found), count, replace=False)
    return [found[int(i)].input for i in chosen]


SUBJECTS: dict[str, tuple[str, Any, str]] = {
    "digits": ("pellucid/digits-vit", digits, "unseen digits"),
    "reviews": ("pellucid/reviews-bert", sentences, "sentences of unseen reviews"),
}


def record(model: Any, inputs: list[Any], name: str, subject: str) -> dict[str, Any]:
    """The numbers of one method."""
    options = {"batch_size": BATCH, "progress": False, **FEWER.get(name, {})}
    found = pellucid.explain(model, inputs, method=name, **options)
    costs = [ex.provenance.forwards + ex.provenance.backwards for ex in found]
    scores = {"passes": summary([float(cost) for cost in costs])}
    for metric, params in METRICS[subject]:
        measured = pellucid.measure(model, found, metric=metric, batch_size=64, **params)
        scores[metric] = summary([one.value for one in measured if one.value is not None])
    return scores


def summary(values: list[float]) -> dict[str, Any]:
    """Mean, standard error of it, and of how many."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.fmean(values), "se": error, "n": len(values)}


def run(subject: str) -> None:
    """Add every method that the stored file does not hold yet."""
    name, draw, what = SUBJECTS[subject]
    model, inputs = pellucid.load(name), draw(COUNT, SEED)
    out = RESULTS / f"{subject}.json"
    stored = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"methods": {}}
    stored["about"] = f"{COUNT} {what}, {name}"
    stored["provenance"] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": model.weights_hash()[:12],
        "torch": torch.__version__,
        "device": "cpu",
        "threads": torch.get_num_threads(),
    }
    for entry in pellucid.list_methods(model):
        if not entry.fits or entry.name in stored["methods"]:
            continue
        began = time.perf_counter()
        stored["methods"][entry.name] = {"all": record(model, inputs, entry.name, subject)}
        print(f"{entry.name}: {time.perf_counter() - began:.1f} s", flush=True)
        out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    missing = [name for name in METHODS if name not in stored["methods"]]
    print("not on this model:", *missing)


if __name__ == "__main__":
    match sys.argv[1:]:
        case [("digits" | "reviews") as subject]:
            run(subject)
        case _:
            raise SystemExit(__doc__)

"""Every image method on pet photographs: localisation, sparseness, faithfulness, sensitivity.

    python benchmarks/pets.py prepare                     # the test images, once, from parquet
    python benchmarks/pets.py run OUT.json [I/N]          # adds what OUT.json does not hold yet

One record a method, so that a run can stop anywhere and go on; I/N is every N-th method from the
I-th. The images were never seen in training; the classifier (44 % of 37 breeds) was trained from
scratch on the other 6,549.
"""

from __future__ import annotations

import io
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
from _data import FOLDER
from PIL import Image

import pellucid
from pellucid.data import Dataset, Sample
from pellucid.methods import METHODS

PREPARED = Path(__file__).parent.parent / "training" / ".data" / "pets.npz"
PERTURBED, LEVELS, SENSITIVE, PROBED, BATCH = 100, 28, 20, 150, 100

SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "vtranm, identity": ("vtranm", {"init": "identity"}),
    "vtranm, residual": ("vtranm", {"reference": "residual"}),
    "vtranm, +AF+L": ("vtranm", {"rung": "af_l"}),
    "vtranm, +AF": ("vtranm", {"rung": "af"}),
    "vtranm, Baseline": ("vtranm", {"rung": "baseline"}),
    "attn_lrp, vit": ("attn_lrp", {"preset": "vit"}),
}
FEWER = {"rise": {"masks": 1000}, "lime": {"samples": 1000}, "kernel_shap": {"samples": 1024}}
SLOW = ("attention_flow",)  # ten seconds an image, a maximum flow for each of 257 tokens
INSENSITIVE = ("rise", "vit_cx", "lime", "kernel_shap", "slalom")  # eleven maps cost too much
PROBE = (
    *("centre", "random", "raw_attention", "rollout", "grad_cam", "transformer_mm"),
    *("vtranm", "vtranm, identity", "vtranm, residual", "vtranm, Baseline", "pullback", "tis"),
)

LOCALISATION = (
    *("pixel_accuracy", "mean_average_precision", "mean_iou"),
    *("pointing_game", "energy_pointing_game", "sparseness"),
)
PERTURBATION = ("positive_perturbation", "negative_perturbation")
BASELINES = ("mean", "blur", "black", "random")


def asked() -> dict[str, tuple[Any, dict[str, Any]]]:
    """All configured methods by name, the controls among them."""
    of_images = {name: one for name, one in METHODS.items() if "image" in one.kinds}
    known = {name: (name, FEWER.get(name, {})) for name in of_images if name not in SLOW}
    return {**known, **SETTINGS}


# ---- data ----------------------------------------------------------------------------------------


def prepare() -> None:
    """Keep the test images and their trimaps as they are encoded."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(FOLDER / "data" / "pets128.parquet").to_pylist()
    test = [row for row in table if row["split"] == "test"]
    kept: dict[str, Any] = {"breed": np.array([row["breed"] for row in test])}
    for number, row in enumerate(test):
        for name in ("image", "trimap"):
            kept[f"{name}{number}"] = np.frombuffer(row[name], np.uint8)
    PREPARED.parent.mkdir(exist_ok=True)
    np.savez(PREPARED, **kept)


def pets() -> Dataset:
    """Image, mask and breed of every test image, in an order drawn once."""
    if not PREPARED.exists():
        raise SystemExit(f"{PREPARED} is missing; type: python benchmarks/pets.py prepare")
    found = []
    with np.load(PREPARED) as data:
        breeds = data["breed"].tolist()
        for number in np.random.default_rng(0).permutation(len(breeds)).tolist():
            image = Image.open(io.BytesIO(data[f"image{number}"].tobytes())).convert("RGB")
            trimap = np.asarray(Image.open(io.BytesIO(data[f"trimap{number}"].tobytes())))
            mask = np.where(trimap == 3, -1, trimap == 1)
            found.append(Sample(image, str(number), label=breeds[number], truth={"mask": mask}))
    return pellucid.data.of(found, name="pets")


# ---- one method ----------------------------------------------------------------------------------


def record(model: Any, data: Dataset, correct: Dataset, method: Any, name: str) -> dict[str, Any]:
    """Every number of one method."""
    began = time.perf_counter()
    few = data[:PERTURBED]

    def scores(chosen: Dataset, metrics: list[Any], target: Any = None) -> dict[str, Any]:
        options = {"target": target, "batch_size": BATCH, "progress": False}
        table = pellucid.evaluate(model, chosen, methods=[method], metrics=metrics, **options)
        found = {
            row.metric: {"mean": row.mean, "se": row.se, "n": row.n, "skipped": row.skipped}
            for row in table.rows
        }
        return found | differences(table)

    curves = [
        (metric, {"steps": LEVELS, "baseline": baseline, "space": "normalized"})
        for baseline in BASELINES
        for metric in ("insertion", "deletion")
    ]
    probe = [
        *("mean_iou", "mean_average_precision", ("pointing_game", {"max_coverage": 1.0})),
        *PERTURBATION,
        ("insertion_minus_deletion", {"steps": 20, "baseline": "mean", "space": "normalized"}),
    ]
    found = {
        "all": scores(data, [*LOCALISATION, "runtime"]),
        "predicted": scores(few, [*PERTURBATION, "aopc", "log_odds"]),
        "label": scores(few, [*PERTURBATION, *curves], "label"),
    }
    if name in PROBE:
        found["probe"] = scores(correct, probe)
    if name.split(",")[0] not in INSENSITIVE:
        found["sensitivity"] = scores(data[:SENSITIVE], ["max_sensitivity"])
    return found | {"seconds": time.perf_counter() - began}


def differences(table: pellucid.Table) -> dict[str, Any]:
    """Insertion minus deletion of every baseline, image by image."""
    found = {}
    method = table.methods[0].label
    for row in table.rows:
        if row.metric.startswith("insertion(") and row.n > 1:
            other = row.metric.replace("insertion", "deletion")
            pairs = zip(
                table.measurements(method, row.metric),
                table.measurements(method, other),
                strict=True,
            )
            values = [one.value - two.value for one, two in pairs]
            error = statistics.stdev(values) / math.sqrt(len(values))
            name = row.metric.replace("insertion", "insertion minus deletion")
            found[name] = {"mean": statistics.fmean(values), "se": error, "n": len(values)}
    return found


# ---- runs and the page ---------------------------------------------------------------------------


def run(out: Path, part: int, parts: int) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU; a CPU has full precision
    model = pellucid.load(FOLDER / "models" / "pets_vit", dtype="float32", device=device)
    data = pets()
    images = [sample.input for sample in data]
    clean = pellucid.explain(model, images, method="raw_attention", batch_size=BATCH)
    right = [found.index == sample.label for found, sample in zip(clean, data, strict=True)]
    correct = pellucid.data.of([s for s, yes in zip(data, right, strict=True) if yes][:PROBED])
    stored = json.loads(out.read_text()) if out.exists() else {"methods": {}}
    stored["provenance"] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": model.weights_hash()[:12],
        "accuracy": sum(right) / len(right),
        "torch": torch.__version__,
        "device": f"{torch.cuda.get_device_name()}, TF32" if device == "cuda" else "cpu",
    }
    for name, configured in list(asked().items())[part::parts]:
        if name in stored["methods"]:
            continue
        stored["methods"][name] = record(model, data, correct, configured, name)
        print(f"{name}: {stored['methods'][name]['seconds']:.1f} s", flush=True)
        out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare"]:
            prepare()
        case ["run", out]:
            run(Path(out), 0, 1)
        case ["run", out, part]:
            run(Path(out), *map(int, part.split("/")))
        case _:
            raise SystemExit(__doc__)

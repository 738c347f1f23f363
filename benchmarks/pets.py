"""Every image method on pet photographs: localisation, sparseness, faithfulness, sensitivity.

    python benchmarks/pets.py prepare                     # the test images, once, from the parquet file
    python benchmarks/pets.py run OUT.json [METHOD ...]   # adds what OUT.json does not hold yet
    python benchmarks/pets.py table OUT.json              # writes docs/results/pets.md

One record a method, so that a run can stop anywhere and go on. The images were never seen in
training; the classifier (44 % of 37 breeds) was trained from scratch on the other 6,549.
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
from pellucid import Explanation
from pellucid.methods import METHODS
from pellucid.metrics import METRICS

PREPARED = Path(__file__).parent.parent / "training" / ".data" / "pets.npz"
PAGE = Path(__file__).parent.parent / "docs" / "results" / "pets.md"
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "vtranm": ("vtranm", {}),
    "vtranm, identity": ("vtranm", {"init": "identity"}),
    "vtranm, residual": ("vtranm", {"reference": "residual"}),
    "vtranm, +AF+L": ("vtranm", {"rung": "af_l"}),
    "vtranm, +AF": ("vtranm", {"rung": "af"}),
    "vtranm, Baseline": ("vtranm", {"rung": "baseline"}),
    "attn_lrp, vit": ("attn_lrp", {"preset": "vit"}),
    **{name: (name, {}) for name, one in METHODS.items() if "image" in one.kinds},
}
SLOW = ("rise", "vit_cx")  # not in max-sensitivity, which explains eleven times
LOCALISATION = (
    *("pixel_accuracy", "mean_average_precision", "mean_iou"),
    *("pointing_game", "energy_pointing_game"),
)
BASELINES = ("mean", "blur", "black", "random")
PERTURBED, LEVELS, SENSITIVE, PROBED, BATCH = 100, 28, 20, 150, 256


def centre_prior(case: pellucid.Case) -> torch.Tensor:
    """A control that knows no model: the nearer to the middle, the higher."""
    height, width = case.batch.items[0].grid
    y = torch.linspace(-1, 1, height)[:, None]
    x = torch.linspace(-1, 1, width)[None]
    found = torch.zeros(case.mask.shape)
    found[case.content.cpu()] = (-(x**2 + y**2)).flatten().repeat(len(found))
    return found


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


def samples() -> list[tuple[Image.Image, np.ndarray, int]]:
    """Image, mask and breed of every test image."""
    if not PREPARED.exists():
        raise SystemExit(f"{PREPARED} is missing; type: python benchmarks/pets.py prepare")
    found = []
    with np.load(PREPARED) as data:
        for number, breed in enumerate(data["breed"].tolist()):
            image = Image.open(io.BytesIO(data[f"image{number}"].tobytes())).convert("RGB")
            trimap = np.asarray(Image.open(io.BytesIO(data[f"trimap{number}"].tobytes())))
            found.append((image, np.where(trimap == 3, -1, trimap == 1), breed))
    return found


# ---- one method ----------------------------------------------------------------------------------


class Protocol:
    """The images, the model, and what is asked of every method."""

    def __init__(self, model: Any) -> None:
        self.model = model
        everything = samples()
        self.images = [image for image, _, _ in everything]
        self.masks = [mask for _, mask, _ in everything]
        self.labels = [breed for _, _, breed in everything]
        drawn = np.random.default_rng(0).permutation(len(everything))
        self.perturbed = drawn[:PERTURBED].tolist()
        self.sensitive = drawn[:SENSITIVE].tolist()
        clean = self.explained("raw_attention", {}, range(len(everything)))
        correct = [e.index == breed for e, breed in zip(clean, self.labels, strict=True)]
        self.accuracy = statistics.mean(correct)
        self.probed = [i for i in drawn.tolist() if correct[i]][:PROBED]

    def explained(
        self, method: Any, params: dict[str, Any], chosen: Any, target: Any = None
    ) -> Any:
        images = [self.images[i] for i in chosen]
        options = {"target": target, "batch_size": BATCH, "progress": False}
        return pellucid.explain(self.model, images, method=method, **options, **params)

    def of_labels(self, method: Any, params: dict[str, Any], chosen: Any) -> list[Explanation]:
        """The maps of the right class of each image."""
        found: dict[int, Explanation] = {}
        for label in sorted({self.labels[i] for i in chosen}):
            own = [i for i in chosen if self.labels[i] == label]
            found |= dict(zip(own, self.explained(method, params, own, label), strict=True))
        return [found[i] for i in chosen]

    def record(self, method: Any, params: dict[str, Any], sensitivity: bool) -> dict[str, Any]:
        """Every number of one method."""
        began = time.perf_counter()
        maps = self.explained(method, params, range(len(self.images)))
        seconds = time.perf_counter() - began
        own = METHODS.get(method) if isinstance(method, str) else None
        some = [maps[i] for i in self.perturbed]
        agnostic = own is None or not own.class_specific
        by_label = some if agnostic else self.of_labels(method, params, self.perturbed)
        found = {
            "seconds": seconds / len(maps),
            "forwards": float(maps[0].provenance.forwards),
            "sparseness": self.measured(maps, "sparseness"),
        }
        for name in LOCALISATION:
            found[name] = self.measured(maps, name, [self.masks[i] for i in range(len(maps))])
        labels = [self.labels[i] for i in self.perturbed]
        for name in ("positive_perturbation", "negative_perturbation"):
            found[f"{name}, predicted"] = self.measured(some, name, labels)
            found[f"{name}, label"] = self.measured(by_label, name, labels)
        for name in ("aopc", "log_odds"):
            found[name] = self.measured(some, name)
        for baseline in BASELINES:
            options = {"steps": LEVELS, "baseline": baseline, "space": "normalized"}
            for name in ("insertion", "deletion", "insertion_minus_deletion"):
                found[f"{name}, {baseline}"] = self.measured(by_label, name, **options)
        found["probe"] = self.probe(maps)
        if sensitivity:
            few = [maps[i] for i in self.sensitive]
            found["max_sensitivity"] = self.measured(few, "max_sensitivity")
        return found | {"total_seconds": time.perf_counter() - began}

    def probe(self, maps: list[Explanation]) -> dict[str, Any]:
        """The same on images that the model classifies correctly, by a smaller protocol."""
        some, masks = [maps[i] for i in self.probed], [self.masks[i] for i in self.probed]
        labels = [self.labels[i] for i in self.probed]
        found = {
            name: self.measured(some, name, masks)
            for name in ("mean_iou", "mean_average_precision", "pointing_game")
        }
        for name in ("negative_perturbation", "positive_perturbation"):
            found[name] = self.measured(some, name, labels)
        options = {"steps": 20, "baseline": "mean", "space": "normalized"}
        found["insertion_minus_deletion"] = self.measured(
            some, "insertion_minus_deletion", **options
        )
        return found

    def measured(
        self, maps: list[Explanation], metric: str, truth: Any = None, **params: Any
    ) -> dict[str, Any]:
        """Mean, standard error and how many; pooled where the metric says so."""
        options = {"truth": truth, "batch_size": BATCH, **params}
        found = pellucid.measure(self.model, maps, metric=metric, **options)
        values = [one.value for one in found if one.value is not None]
        pool = METRICS[metric].pool
        mean = statistics.fmean(values)
        if pool is not None:
            names = found[0].counts
            mean = pool({name: sum(one.counts[name] for one in found) for name in names})
        error = statistics.stdev(values) / math.sqrt(len(values))
        return {"mean": mean, "se": error, "n": len(values), "skipped": len(found) - len(values)}


# ---- runs and the page ---------------------------------------------------------------------------


def run(out: Path, names: list[str]) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = pellucid.load(FOLDER / "models" / "pets_vit", dtype="float32", device=device)
    protocol = Protocol(model)
    stored = json.loads(out.read_text()) if out.exists() else {"methods": {}}
    stored["provenance"] = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "weights": model.weights_hash()[:12],
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "accuracy": protocol.accuracy,
    }
    controls = {"centre prior": (centre_prior, {})}
    for name, (method, params) in (controls | SETTINGS).items():
        if name in stored["methods"] or (names and name not in names):
            continue
        sensitivity = isinstance(method, str) and method not in SLOW
        stored["methods"][name] = protocol.record(method, params, sensitivity)
        print(name, f"{stored['methods'][name]['total_seconds']:.1f} s", flush=True)
        out.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["prepare"]:
            prepare()
        case ["run", out, *names]:
            run(Path(out), names)
        case _:
            raise SystemExit(__doc__)

"""Inputs for measuring: drawn by a seed, from data that is fetched and never part of the tree."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

_HERE = Path(__file__).parent
DIGITS = _HERE.parent / "training" / ".data" / "digits.npz"
FOLDER = Path(os.environ.get("PELLUCID_MEASURING", _HERE.parent.parent / "shared"))


def digits(count: int, seed: int) -> list[np.ndarray]:
    """MNIST test digits, fetched by `python training/fetch.py`."""
    if not DIGITS.exists():
        raise SystemExit(f"{DIGITS} is missing; type: python training/fetch.py")
    with np.load(DIGITS) as data:
        images = data["test_images"]
    chosen = np.random.default_rng(seed).choice(len(images), count, replace=False)
    return [images[i] for i in chosen]


def reviews(count: int, seed: int, longest: int = 300) -> list[str]:
    """Reviews that the sentiment model of the measuring folder never saw, cut at a sentence."""
    import pyarrow.parquet as parquet

    texts = parquet.read_table(FOLDER / "data" / "imdb_test2000.parquet")["text"].to_pylist()
    chosen = np.random.default_rng(seed).choice(len(texts), count, replace=False)
    return [texts[i][:longest].rsplit(".", 1)[0] + "." for i in chosen]

"""Whether another seed gives the same SLALOM, what it costs, and whether recovery is exact.

Reviews of 80 tokens and pairs of their tokens. A rank correlation is the mean over pairs of seeds
and reviews; as a claim it is the distance from one, so that less is better.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import torch
from _claims import Claim, timed
from _data import FOLDER
from slalom_fidelity import TARGET, TOKENS, reviews_of
from torch import Tensor

import pellucid
from pellucid.methods import METHODS
from pellucid.surrogates import Slalom

REVIEWS, SEEDS = 3, 3
WANTED = {500: (0.95, 0.85, 0.8), 2000: (0.99, 0.95, 3.4)}  # of values, of importances; seconds
SOLVERS = {"gauss_newton": "importance", "adam": "eff"}
PLANTED = 128


def claims() -> list[Claim]:
    model = pellucid.load(str(FOLDER / "models" / "minilm_sentiment"), dtype="float32")
    texts = reviews_of(model, TOKENS, REVIEWS)
    found = [
        claim
        for samples in WANTED
        for solver, preset in SOLVERS.items()
        for claim in _stability(model, texts, samples, solver, preset)
    ]
    return [*found, *_against_kernel_shap(model, texts[0]), _recovery()]


def _stability(model: Any, texts: list[str], samples: int, solver: str, preset: str) -> list[Claim]:
    """Both rank correlations, and the seconds that one explanation takes."""
    values, importances, seconds = [], [], []
    for text in texts:
        runs = []
        for seed in range(SEEDS):
            began = time.perf_counter()
            runs.append(_run(model, text, samples, preset, seed))
            seconds.append(time.perf_counter() - began)
        content = runs[0].extras["player"] >= 0
        for one, other in combinations(runs, 2):
            values.append(_spearman(one.values[content], other.values[content]))
            importances.append(_spearman(one.importance[content], other.importance[content]))
    value, importance, most = WANTED[samples]
    what = f"{samples} pairs, {solver}: one less the rank correlation of {{}} between seeds"
    return [
        _distance(what.format("values"), values, value),
        _distance(what.format("importances"), importances, importance),
        Claim(
            f"{samples} pairs, {solver}: an explanation of {TOKENS} tokens",
            sorted(seconds)[len(seconds) // 2],
            "wanted on two cores",
            most,
            "s",
            1.0,
            0.0,
        ),
    ]


def _run(model: Any, text: str, samples: int, preset: str, seed: int) -> Any:
    return pellucid.explain(
        model,
        text,
        method="slalom",
        preset=preset,
        samples=samples,
        unit="type",
        seed=seed,
        target=TARGET,
        batch_size=64,
    )


def _distance(what: str, correlations: list[float], wanted: float) -> Claim:
    mean = sum(correlations) / len(correlations)
    return Claim(what, 1 - mean, f"wanted: {wanted}", 1 - wanted, "", 1.0, 0.0)


def _spearman(one: Tensor, other: Tensor) -> float:
    ranks = torch.stack([x.argsort().argsort().double() for x in (one, other)])
    return float(torch.corrcoef(ranks)[0, 1])


def _against_kernel_shap(model: Any, text: str) -> list[Claim]:
    """Both with 500 samples, where Kernel SHAP is there."""
    if "kernel_shap" not in METHODS:
        return []

    def theirs() -> Any:
        return pellucid.explain(
            model, text, method="kernel_shap", samples=500, target=TARGET, batch_size=64
        )

    what, against = "slalom with 500 pairs", "kernel_shap with 500 samples"
    return [
        timed(what, lambda: _run(model, text, 500, "eff", 0), against, theirs, goal=0.5, repeats=3)
    ]


def _recovery() -> Claim:
    """A planted SLALOM of many tokens from twice as many questions less one."""
    made = torch.Generator().manual_seed(0)
    value = torch.randn(PLANTED, generator=made, dtype=torch.float64)
    importance = 1.5 * torch.randn(PLANTED, generator=made, dtype=torch.float64)
    truth = Slalom(tuple(range(PLANTED)), value, importance - importance.mean())
    found = Slalom.recover(truth.predict, truth.units)
    error = max(
        float((found.value - truth.value).abs().max()),
        float((found.importance - truth.importance).abs().max()),
    )
    what = f"recovery of {PLANTED} planted tokens from {2 * PLANTED - 1} questions, largest error"
    return Claim(what, error, "wanted", 1e-8, "", 1.0, 0.0)

"""How far a walk gets inside its class, and at what drift: the corrected walk against Algorithm 1.

Digits are drawn from MNIST's test images and reviews from the measuring folder, by a seed that was
used for nothing else. Distances are measured in the median distance between the embeddings of two
inputs. Drift is the largest change of any class probability, over eight inputs that walk at once.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from _claims import Claim
from _data import FOLDER, digits, reviews
from _naive import prediction, step
from torch import Tensor

import pellucid
from pellucid import Target, Trajectory
from pellucid._case import Case
from pellucid.adapters import Adapter
from pellucid.explorer.space import find_space

SEED = 20_261_119
COUNT = 8
FAR = {"digits": {"longest": 2.0}, "sentiment": {"longest": 50.0}}  # explored as far as possible


def claims() -> list[Claim]:
    found: list[Claim] = []
    model = pellucid.load("pellucid/digits-vit", dtype="float64")
    found += _claims_of("digits", model, digits(COUNT, SEED), digits(200, SEED + 1))
    if (FOLDER / "models" / "minilm_sentiment").exists():
        model = pellucid.load(str(FOLDER / "models" / "minilm_sentiment"), dtype="float64")
        found += _claims_of("sentiment", model, reviews(COUNT, SEED), reviews(60, SEED + 1))
    return found


def _claims_of(name: str, model: Adapter, inputs: list, others: list) -> list[Claim]:
    unit = _median_distance(model, others)
    found = []
    for tolerance in (1e-6, 1e-9):
        walks, _ = _walked(model, inputs, unit, tolerance=tolerance, **FAR[name])
        found.append(
            _drift(f"{name}: {unit:.2f} away (one median distance)", walks, unit, tolerance)
        )
    box = pellucid.feasible(model, [*others, *inputs])
    walks, _ = _walked(model, inputs, unit / 2, tolerance=1e-6, within=box, **FAR[name])
    found.append(_drift(f"{name}: half of that, within the data's box", walks, unit / 2, 1e-6))
    return [*found, *_against_naive(name, model, inputs, unit)]


def _walked(
    model: Adapter, inputs: list, distance: float, **rules: object
) -> tuple[list[Trajectory], float]:
    began = time.process_time()
    walks = pellucid.explore(model, inputs, steps=3000, distance=distance, save_every=3000, **rules)
    return walks, time.process_time() - began


def _drift(what: str, walks: list[Trajectory], distance: float, allowed: float) -> Claim:
    kept = sum(walk.kept_class for walk in walks)
    arrived = sum(float(walk.displacement[-1]) >= distance for walk in walks)
    worst = max(float(walk.drift.max()) for walk in walks)
    label = f"worst drift, {what}; {arrived} of {len(walks)} arrived, {kept} kept their class"
    complete = arrived == kept == len(walks)
    return Claim(label, worst if complete else 1.0, "allowed", allowed, "", 1.0, 0.0)


# ---- the textbook's walk -------------------------------------------------------------------------


def _against_naive(name: str, model: Adapter, inputs: list, unit: float) -> list[Claim]:
    """At the distance of ours, and as fast as it gets at a drift of 1e-6."""
    naive = _Naive(model, inputs)
    drift, _, _ = naive.at_distance(unit)
    ours, seconds = _walked(model, inputs, unit, tolerance=1e-6, **FAR[name])
    worst = max(float(walk.drift.max()) for walk in ours)
    rate = np.median([float(walk.displacement[-1]) for walk in ours]) / seconds
    best = naive.fastest(1e-6)
    return [
        Claim(f"{name}: worst drift there", worst, "Algorithm 1 there", drift, "", 1e-3, 0.0),
        Claim(
            f"{name}: seconds for one unit of distance at a drift of 1e-6, 8 inputs at once",
            1 / rate,
            "Algorithm 1, its best scale, one step",
            1 / best,
            "s",
            0.01,
            0.0,
        ),
    ]


class _Naive:
    """Algorithm 1 on eight inputs, with Haar null vectors and its step times a constant."""

    def __init__(self, model: Adapter, inputs: list) -> None:
        self._model = model
        self._space = find_space(model, "embedding")
        target = Target.predicted()
        self._cases = [Case(model, model.encode([one], target), target) for one in inputs]

    def step_all(self, scale: float) -> tuple[float, float, float]:
        """Worst drift, median displacement and seconds of one step from every input."""
        drifts, moved, seconds = [], [], 0.0
        for case in self._cases:
            generator = torch.Generator().manual_seed(SEED)
            x = self._space.start(case.batch)[0]
            function = prediction(case, self._space)
            began = time.process_time()
            y = step(function, x, case.content[0], scale, generator, haar=True)
            seconds += time.process_time() - began
            moved.append(float((y - x).norm()))
            drifts.append(float(_change(function, x, y)))
        return max(drifts), float(np.median(moved)), seconds

    def at_distance(self, distance: float) -> tuple[float, float, float]:
        """One step as long as that; more steps drift no less (see the page on walks)."""
        _, reach, _ = self.step_all(1.0)
        return self.step_all(distance / reach)

    def fastest(self, drift: float) -> float:
        """The most distance a second, over scales, at no more than this drift."""
        rates = []
        for scale in np.geomspace(1e-4, 1e3, 29):
            found, reach, seconds = self.step_all(float(scale))
            if found <= drift:
                rates.append(reach / seconds)
        return max(rates)


def _change(function: object, x: Tensor, y: Tensor) -> Tensor:
    with torch.no_grad():
        p, q = (function(state).softmax(-1) for state in (x, y))
    return (p - q).abs().max()


def _median_distance(model: Adapter, inputs: list) -> float:
    """Between the embeddings of two inputs; of texts, over the tokens that both have."""
    space, target = find_space(model, "embedding"), Target.predicted()
    states = [space.start(model.encode([one], target))[0] for one in inputs]
    found = []
    for one, other in zip(states[::2], states[1::2], strict=True):
        length = min(len(one), len(other))
        found.append(float((one[:length] - other[:length]).norm()))
    return float(np.median(found))

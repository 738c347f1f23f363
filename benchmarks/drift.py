"""How far a walk gets inside its class, and at what drift: the corrected walk against Algorithm 1.

Digits are drawn from MNIST's test images and reviews from the measuring folder, by a seed that was
used for nothing else. Distances are measured in the median distance between the embeddings of two
inputs. Drift is the largest change of any class probability, over eight inputs that walk at once.

Nearly all digits are predicted with certainty, where no walk drifts measurably, however careless.
So half of the digits are ones that the model is unsure of; digits as they come are a row besides.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from _claims import Claim
from _data import FOLDER, digits, reviews
from _naive import prediction, step

import pellucid
from pellucid import Target, Trajectory
from pellucid._case import Case
from pellucid.adapters import Adapter
from pellucid.explorer.space import find_space

SEED = 271_828
COUNT = 8
_HELD = 2.8e-6  # of logits' contrasts: |dp| is at most sqrt(2)/4 of it, so a drift of 1e-6 is safe
FAR = {"digits": {"longest": 2.0}, "sentiment": {"longest": 50.0}}  # explored as far as possible


def claims() -> list[Claim]:
    model = pellucid.load("pellucid/digits-vit", dtype="float64")
    others = digits(200, SEED + 1)
    unit = _median_distance(model, others)
    found = _claims_of("digits", model, _half_unsure(model), others, unit)
    found += _against_naive("digits", "digits as they come", model, digits(COUNT, SEED), unit)
    if (FOLDER / "models" / "minilm_sentiment").exists():
        model = pellucid.load(str(FOLDER / "models" / "minilm_sentiment"), dtype="float64")
        others = reviews(60, SEED + 1)
        unit = _median_distance(model, others)
        found += _claims_of("sentiment", model, reviews(COUNT, SEED), others, unit)
    return found


def _half_unsure(model: Adapter) -> list:
    """Four digits with a probability of 0.6 to 0.92, and four above 0.99."""
    drawn = digits(1500, SEED)
    target = Target.predicted()
    with torch.no_grad():
        batches = [model.encode(drawn[i : i + 100], target) for i in range(0, len(drawn), 100)]
        logits = torch.cat([model.rows(model.output(batch), batch)[:, 0] for batch in batches])
    p = logits.softmax(dim=-1).amax(dim=-1).numpy()
    groups = ((p > 0.6) & (p < 0.92), p > 0.99)
    return [drawn[i] for group in groups for i in np.flatnonzero(group)[: COUNT // 2]]


def _claims_of(name: str, model: Adapter, inputs: list, others: list, unit: float) -> list[Claim]:
    found = []
    for tolerance in (1e-6, 1e-9):
        walks, _ = _walked(model, inputs, unit, tolerance=tolerance, **FAR[name])
        found.append(
            _drift(f"{name}: {unit:.2f} away (one median distance)", walks, unit, tolerance)
        )
    box = pellucid.feasible(model, [*others, *inputs])
    walks, _ = _walked(model, inputs, unit / 2, tolerance=1e-6, within=box, **FAR[name])
    found.append(_drift(f"{name}: half of that, within the data's box", walks, unit / 2, 1e-6))
    return [*found, *_against_naive(name, name, model, inputs, unit)]


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


def _against_naive(name: str, what: str, model: Adapter, inputs: list, unit: float) -> list[Claim]:
    """At the distance of ours, and as fast as it gets at a drift of 1e-6."""
    naive = _Naive(model, inputs)
    drift = naive.drift_at(unit)
    ours, seconds = _walked(model, inputs, unit, tolerance=_HELD, **FAR[name])
    worst = max(float(walk.drift.max()) for walk in ours)
    rate = float(np.median([float(walk.displacement[-1]) for walk in ours])) / seconds
    best = naive.fastest(1e-6)
    return [
        Claim(f"{what}: worst drift at one unit", worst, "Algorithm 1 there", drift, "", 1e-3, 0.0),
        Claim(
            f"{what}: seconds for one unit of distance at a drift of 1e-6, 8 inputs at once",
            1 / rate,
            "Algorithm 1, its best scale, one step",
            1 / best,
            "s",
            0.01,
            0.0,
        ),
    ]


class _Naive:
    """Algorithm 1 on all inputs at once, with Haar null vectors and its step times a constant."""

    def __init__(self, model: Adapter, inputs: list) -> None:
        target = Target.predicted()
        case = Case(model, model.encode(inputs, target), target)
        space = find_space(model, "embedding")
        self._moving = case.content
        self._function = prediction(case, space)
        self._x = space.start(case.batch)

    def walk(self, scale: float, steps: int = 1) -> tuple[float, float, float]:
        """Worst drift, median displacement and seconds after some steps from every input."""
        generator = torch.Generator().manual_seed(SEED)
        began, y = time.process_time(), self._x
        for _ in range(steps):
            y = step(self._function, y, self._moving, scale, generator, haar=True).detach()
        seconds = time.process_time() - began
        with torch.no_grad():
            p, q = (self._function(state).softmax(dim=-1) for state in (self._x, y))
        moved = (y - self._x).flatten(1).norm(dim=1)
        return float((p - q).abs().max()), float(moved.median()), seconds

    def drift_at(self, distance: float) -> float:
        """The lesser of what one step of that length drifts, and sixteen in fresh directions."""
        _, reach, _ = self.walk(1.0)
        scale = distance / reach
        return min(self.walk(scale / steps**0.5, steps)[0] for steps in (1, 16))

    def fastest(self, drift: float) -> float:
        """The most distance a second at no more than this drift: the longest step that allows it.

        A longer step takes no longer, so the scale is found by halving an interval.
        """
        low, high = -4.0, 3.0  # powers of ten
        best = 0.0
        for _ in range(14):
            middle = (low + high) / 2
            found, reach, seconds = self.walk(10**middle)
            if found <= drift:
                low, best = middle, max(best, reach / seconds)
            else:
                high = middle
        return best


def _median_distance(model: Adapter, inputs: list) -> float:
    """Between the embeddings of two inputs; of texts, over the tokens that both have."""
    space, target = find_space(model, "embedding"), Target.predicted()
    states = [space.start(model.encode([one], target))[0] for one in inputs]
    found = []
    for one, other in zip(states[::2], states[1::2], strict=True):
        length = min(len(one), len(other))
        found.append(float((one[:length] - other[:length]).norm()))
    return float(np.median(found))

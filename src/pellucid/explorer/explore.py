"""`explore`: a walk through the input space of a model, as one trajectory an input.

SiMEC (inside the class), SiMExp (out of it) and walks to a chosen class: "Unveiling Transformer
Perception by Exploring Input Manifolds", Algorithms 1, 2 and 4.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from pellucid._arguments import integer, real
from pellucid._batches import Progress, reporting
from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._inputs import each, gathered
from pellucid._meter import Meter
from pellucid._provenance import provenance_of
from pellucid._target import Target
from pellucid._trajectory import Trajectory
from pellucid._types import Picture, Text
from pellucid.adapters import as_adapter
from pellucid.adapters.text import LongText
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.explorer.checkpoint import Checkpoint
from pellucid.explorer.plan import Plan, plan
from pellucid.explorer.recorder import Recorder
from pellucid.explorer.settings import Settings, resolve
from pellucid.explorer.space import find_space
from pellucid.explorer.state import Outcome
from pellucid.record import precision

_CLASS = "class"
_PAST = 1.05  # times the distance asked: no step is meant to go further


class Halt(Exception):  # nothing went wrong
    """Raised by a function given as `progress`: the walk ends where it is, and is returned.

    With a checkpoint, the same call goes on from the last point that was kept.
    """


@torch.inference_mode(False)
def explore(
    model: Any,
    inputs: Any,
    *,
    goal: str | int | Target = "stay",
    steps: int = 1000,
    tokens: Any = None,
    space: str = "embedding",
    within: Any = None,
    distance: float | None = None,
    preset: str | None = None,
    repeats: int = 1,
    save_every: int = 10,
    seed: int = 0,
    batch_size: int = 64,
    budget: int | None = None,
    progress: Progress = None,
    checkpoint: str | Path | None = None,
    long: LongText = "refuse",
    **rules: Any,
) -> Any:
    """Walk from one input, or from each of a list of them, through the input space of a model.

    Main arguments: `goal` is "stay" (within the class of inputs that the model cannot tell apart),
    "leave", or a class to walk to; `steps` is the most steps; `tokens` says what moves: positions,
    words, a compiled pattern, a mask of the patch grid, `Top(5)` or `Above(0.5)` by importance
    (None: all of the input but the model's own tokens); `space` is "embedding" (what enters the
    first block), "word", "pixels", or "hidden:l"; `within` is a feasible region: "bounds" of what
    embeddings can be, "pixels" for those of images alone, or what `feasible` returns; `distance`
    ends a walk that far from its start; `preset` is "paper", "published" or "released", the
    authors' own choices.

    Other arguments: `repeats` walks from each input, with other random directions; a point is kept
    every `save_every` steps; `seed` decides all randomness; `batch_size` inputs walk at once;
    `budget` is the most model evaluations an input may cost; `checkpoint` is a file that a killed
    walk continues from (its points lie in another one beside it; both go when all have arrived); a
    function given as `progress` may raise `pellucid.explorer.explore.Halt` to end the walk where it
    is. `rules` are the walk's own: `output`, `top_k`, `metric`, `direction`, `sign`, `persistence`,
    `toward`, `step`, `scale`, `longest`, `solver`, `correct`, `tolerance`, `zero`, `absolute`,
    `allow`, `growth` (see the page on walks).
    """
    adapter = as_adapter(model)
    kind, target = _goal(goal)
    settings = resolve(kind, preset, rules | {"within": within})
    steps, seed = integer("steps", steps, 1, 1000), integer("seed", seed, 0)
    repeats, save_every = integer("repeats", repeats, 1), integer("save_every", save_every, 1, 10)
    batch_size = integer("batch_size", batch_size, 1, 64)
    distance = None if distance is None else _positive(distance)
    _check_long(long)
    adapter.check_state()
    adapter.weights_hash()
    find_space(adapter, space)
    if target.label is not None:
        adapter.class_index(target.label, "goal")
    raw, several = gathered(inputs)
    options = {"long": long} if adapter.kind == "text" else {}
    items = each(raw, lambda one: adapter.read(one, target, **options))
    walks = [item for item in items for _ in range(repeats)]
    request = Request(
        adapter, kind, target, settings, steps, tokens, space, distance, repeats, save_every, seed
    )
    parts = [walks[first : first + batch_size] for first in range(0, len(walks), batch_size)]
    files = [Checkpoint.of(request, part, checkpoint, i) for i, part in enumerate(parts)]
    found: list[Trajectory] = []
    with reporting(progress, steps * len(walks), "walking", "step") as report:
        for part, file in zip(parts, files, strict=True):
            told = _Told(report, steps * len(found), len(part))
            found += replace(request, first=len(found)).run(part, budget, file, told)
            if told.halted:
                break
        else:
            for file in files:
                file.remove()
    single = not several and repeats == 1
    return found[0] if single else found


@dataclass(frozen=True)
class Request:
    """A walk as it was asked for, whatever the inputs."""

    adapter: Any
    kind: str
    target: Target
    settings: Settings
    steps: int
    tokens: Any
    space: str
    distance: float | None
    repeats: int
    save_every: int
    seed: int
    first: int = 0  # the walks of earlier batches

    def repeat(self, row: int) -> int:
        """Which of the walks from its input this one of the batch is."""
        return (self.first + row) % self.repeats

    def run(
        self, items: Sequence[Text | Picture], budget: int | None, file: Checkpoint, report: _Told
    ) -> list[Trajectory]:
        """Walk from these inputs as one batch."""
        began = time.perf_counter()
        assert isinstance(self.adapter, TorchAdapter)
        batch = self.adapter.batch(items, self.target)
        meter = Meter(len(batch), budget)
        case = Case(self.adapter, batch, self.target, seed=self.seed, meter=meter)
        with precision.formulas(self.adapter.device):
            walk = plan(case, self)
            recorder = self._walked(walk, file, report)
        seconds = (time.perf_counter() - began) / len(items)
        return [self._one(case, walk, recorder, row, seconds) for row in range(len(items))]

    def _walked(self, walk: Plan, file: Checkpoint, report: _Told) -> Recorder:
        """Every step of the batch, from the start or from where a file says."""
        state, stepper = walk.state, walk.stepper
        recorder, meter = Recorder(walk, self.save_every), walk.case.meter
        stepper.begin(state)
        recorder.note(0, None)
        k = file.resume(state, recorder, meter)
        while k < self.steps and len(rows := state.walking):
            k += 1
            if self.distance is not None:
                left = _PAST * self.distance - recorder.displacement
                state.stride = state.stride.minimum(left.clamp(min=0).to(state.stride.device))
            recorder.note(k, stepper.step(state, rows))
            if self.distance is not None:
                state.end(recorder.beyond(self.distance), Outcome.ARRIVED)
            if k % self.save_every == 0:
                file.write(k, state, recorder, meter)
            report(k)
            if report.halted:  # not in the file: from there the walk goes on
                state.end(state.walking, Outcome.HALTED)
        recorder.finish(k)
        if not report.halted:
            file.write(k, state, recorder, meter)
            report(self.steps)
        return recorder

    def _one(
        self, case: Case, walk: Plan, recorder: Recorder, row: int, seconds: float
    ) -> Trajectory:
        """The trajectory of one input of the batch."""
        item = case.batch.items[row]
        kept = recorder.of(row)
        ended = int(walk.state.outcome[row])
        outcome = list(Outcome)[ended - 1] if ended else Outcome.COMPLETED
        classes = tuple(walk.classes[row].tolist())
        real = case.mask[row].nonzero()[:, 0]
        own = walk.level.selected[row][real].nonzero()[:, 0].tolist()
        return Trajectory(
            item=replace(item, notes=()),
            goal=self.kind if self.kind != _CLASS else str(self.target.label),
            space=self.space,
            settings=walk.settings.plain()
            | {"steps": self.steps, "save_every": self.save_every, "distance": self.distance}
            | {"repeat": self.repeat(row), "mask": self.target.mask},
            tokens=tuple(own) if len(case.batch.items[row].segments) else (0,),
            iterations=kept.iterations,
            points=kept.points,
            labels=tuple(case.adapter.label_name(i) for i in classes),
            classes=classes,
            probabilities=kept.probabilities,
            predicted=tuple(case.adapter.label_name(i) for i in kept.likeliest),
            series=kept.series,
            outcome=outcome.value,
            completed=outcome in (Outcome.COMPLETED, Outcome.ARRIVED),
            provenance=provenance_of(case, row, seconds),
            notes=(*item.notes, *walk.notes),
            model=self.adapter,
        )


@dataclass
class _Told:
    """Steps of one batch as steps of the whole call, until whoever is told says to halt."""

    report: Callable[[int], None]
    before: int
    walks: int
    halted: bool = False

    def __call__(self, k: int) -> None:
        try:
            self.report(self.before + k * self.walks)
        except Halt:
            self.halted = True


def _goal(goal: Any) -> tuple[str, Target]:
    """What kind of walk it is, and the target that its inputs are read for."""
    if isinstance(goal, str) and goal in ("stay", "leave"):
        return goal, Target.predicted()
    return _CLASS, Target.parse(goal)


def _positive(distance: Any) -> float:
    found = real("distance", distance, 1.0)
    if found <= 0:
        raise ArgumentError(
            explain_error(
                "a walk is at that distance before it begins",
                got=f"distance={distance!r}",
                expected="a number greater than zero",
                instead="distance=1.0",
            )
        )
    return found


def _check_long(long: Any) -> None:
    if long not in ("refuse", "truncate"):
        raise ArgumentError(
            explain_error(
                "a walk begins at one state of the whole text",
                got=f"long={long!r}",
                expected="'refuse' or 'truncate'",
                instead="long='truncate'",
            )
        )

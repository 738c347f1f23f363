"""From what was asked to what walks: every name becomes the object that does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid.explorer.bounds import find_region
from pellucid.explorer.checks import OTHERS
from pellucid.explorer.level import Level
from pellucid.explorer.predictions import probabilities
from pellucid.explorer.selection import check_whole, existing, select
from pellucid.explorer.settings import Settings
from pellucid.explorer.space import Space, find_space
from pellucid.explorer.state import State
from pellucid.explorer.steppers import Steppers
from pellucid.geometry.importance import block_importance
from pellucid.geometry.outputs import Coordinates, Output, pulled_back
from pellucid.geometry.pullback import RELATIVE

if TYPE_CHECKING:
    from pellucid.explorer.explore import Request

_SHOWN = 10  # probabilities kept of a prediction over very many classes
_MANY = 64
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4}


@dataclass(eq=False)
class Plan:
    """A walk that can begin."""

    case: Case
    settings: Settings
    level: Level
    coordinates: Coordinates
    state: State
    stepper: Any
    classes: Tensor  # b c: whose probabilities are kept
    notes: tuple[str, ...] = ()

    def probabilities(self, logits: Tensor) -> Tensor:
        """What the model predicts, in float64 (b c); the value itself for a regression."""
        return probabilities(self.case.adapter.task, logits)


def plan(case: Case, request: Request) -> Plan:
    """Everything that the walk of this batch needs; bad combinations end here, before any step."""
    space = find_space(case.adapter, request.space)
    origin = space.start(case.batch)
    logits = _single_row(case)
    settings = _with_defaults(request.settings, origin.dtype)
    if request.kind == "class" or settings.direction in ("boundary", "gradient"):
        _check_classes(logits)
    output = _output(settings, case, logits)
    settings = replace(settings, output=output)
    goals = case.objective.classes if request.kind == "class" else None
    coordinates = output.bind(logits, None if goals is None else goals[:, 0])
    selected = _selected(request.tokens, case, space, origin, coordinates)
    region = find_region(settings.within, case, space, origin)
    region.start(origin.double(), selected)  # an error where the start lies outside
    chart = region if settings.correct else None
    level = Level(case, space, origin, selected, coordinates, chart)
    state = _started(level, _generators(case, request))
    if request.kind == "stay" and settings.direction not in OTHERS:
        fewest = 1 if settings.metric == "blocks" else int(selected.sum(dim=1).min())
        _check_room(fewest * min(origin.shape[2], state.w.shape[2]), state.y.shape[1])
    shown = _shown(logits, case, request.kind)
    made = Plan(case, settings, level, coordinates, state, None, shown)
    made.stepper = Steppers(made, request.kind, space, region).make()
    return made


def _output(settings: Settings, case: Case, logits: Tensor) -> Output:
    """What of the prediction is kept or measured."""
    softmax = case.adapter.task in ("classification", "masked", "causal")
    given = Output.parse(settings.output, settings.top_k)
    output = given or Output.default(logits.shape[-1], softmax, settings.top_k)
    looks_at_classes = settings.direction in ("boundary", *OTHERS)
    return Output() if output.quantity == "hidden" and looks_at_classes else output


def _selected(
    tokens: Any, case: Case, space: Space, origin: Tensor, coordinates: Coordinates
) -> Tensor:
    """The tokens that move (b t)."""
    content = existing(case.mask, origin)
    if not case.mask.shape[1]:
        check_whole(tokens)
        return content
    scout = Level(case, space, origin, content, coordinates)
    return select(tokens, case.batch, lambda: _importance(scout))


def _started(level: Level, generators: list[torch.Generator]) -> State:
    """Where the walk begins."""
    w = level.region.start(level.origin.double(), level.selected)
    seen = level.see(w, torch.arange(len(w)))
    return State(
        w=w.clone(),
        y=seen.y.clone(),
        logits=seen.logits.clone(),
        heading=torch.zeros_like(w),
        stride=torch.zeros(len(w), dtype=torch.float64, device=w.device),
        outcome=torch.zeros(len(w), dtype=torch.long),
        generators=generators,
    )


def _shown(logits: Tensor, case: Case, kind: str) -> Tensor:
    """The classes whose probabilities are kept (b c): all, or the likeliest of very many."""
    if logits.shape[-1] <= _MANY:
        return torch.arange(logits.shape[-1], device=logits.device).expand(len(logits), -1)
    likeliest = logits.topk(_SHOWN, dim=-1).indices
    return _with_goal(likeliest, case) if kind == "class" else likeliest


# ---- small questions, one each -------------------------------------------------------------------


def _with_defaults(settings: Settings, dtype: torch.dtype) -> Settings:
    """The numbers that depend on the model's type."""
    if dtype not in TOLERANCE:
        raise ArgumentError(
            explain_error(
                "a walk needs more digits than half precision has",
                got=f"a model in {dtype}",
                expected="float32 or float64",
                instead="pellucid.load(..., dtype='float32')",
            )
        )
    tolerance = TOLERANCE[dtype] if settings.tolerance is None else settings.tolerance
    zero = RELATIVE[dtype] if settings.zero is None else settings.zero
    return replace(settings, tolerance=tolerance, zero=zero)


def _single_row(case: Case) -> Tensor:
    """The logits of the prediction (b c)."""
    if case.target.function is not None or case.rows.shape[1] != 1:
        raise ArgumentError(
            explain_error(
                "a walk keeps or leaves one prediction",
                got=f"goal: {case.target.describe()}",
                expected="a class, a masked word or a next token",
                instead="goal='stay'",
            )
        )
    return case.rows[:, 0]


def _with_goal(classes: Tensor, case: Case) -> Tensor:
    """The class to walk to among those that are kept, instead of the last where it is not."""
    assert case.objective.classes is not None
    goal = case.objective.classes[:, :1].to(classes.device)
    among = (classes == goal).any(dim=1, keepdim=True)
    last = torch.where(among, classes[:, -1:], goal)
    return torch.cat([classes[:, :-1], last], dim=1)


def _importance(level: Level) -> Tensor:
    """Algorithm 3 at the start (b t)."""
    seen, jacobian = level.linearise(level.origin.double(), torch.arange(len(level.origin)))
    return block_importance(pulled_back(level.coordinates, seen.y, jacobian.double()))


def _check_classes(logits: Tensor) -> None:
    if logits.shape[-1] < 2:
        raise ArgumentError(
            explain_error(
                "a walk to or from a class needs a model that has several",
                got="a model with one output",
                expected="goal='stay' or goal='leave', along the metric of that output",
                instead="goal='leave', direction='max'",
            )
        )


def _check_room(fewest: int, held: int) -> None:
    if fewest <= held:
        raise ArgumentError(
            explain_error(
                "there is no direction that leaves the prediction as it is",
                got=f"{fewest} numbers that can move, and {held} that must stay",
                expected="more free numbers than coordinates of the prediction",
                instead="tokens=None to move all tokens, or a smaller top_k=",
            )
        )


def _generators(case: Case, request: Request) -> list[torch.Generator]:
    """One source of randomness a walk; repeats of an input have their own."""
    return [
        torch.Generator().manual_seed(generator.initial_seed() + request.repeat(i))
        for i, generator in enumerate(case.generators)
    ]

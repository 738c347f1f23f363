"""From what was asked to what walks: every name becomes the object that does it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid.explorer.boundary import ToBoundary
from pellucid.explorer.bounds import find_region
from pellucid.explorer.directions import Away, Fixed, Haar, Persistent, Reference, Toward
from pellucid.explorer.eigen import Lift, NonDecreasing, NullEigenvector, Range, Rule
from pellucid.explorer.eigen import Null as InKernel
from pellucid.explorer.inside import Inside
from pellucid.explorer.level import Level
from pellucid.explorer.perturbation import AlongGradient, Isotropic, Perturbed, Trial
from pellucid.explorer.predictions import probabilities
from pellucid.explorer.regions import Everywhere, Region
from pellucid.explorer.selection import check_whole, select
from pellucid.explorer.settings import OTHERS, Settings
from pellucid.explorer.solvers import SOLVERS
from pellucid.explorer.space import Space, find_space
from pellucid.explorer.state import State, draw
from pellucid.explorer.strides import Stride
from pellucid.explorer.textbook import Textbook
from pellucid.geometry.importance import block_importance
from pellucid.geometry.outputs import Coordinates, Leads, Output, pulled_back
from pellucid.geometry.pullback import RELATIVE

if TYPE_CHECKING:
    from pellucid.explorer.explore import Request

_SHOWN = 10  # probabilities kept of a prediction over very many classes
_MANY = 64
_LONGEST = 0.5  # times the length of a typical token: no step is longer unless asked
_PACE = 0.1  # the same for a corrected walk, which keeps its pace for many steps
_FIRST = 1.0  # the first step, where such long ones are allowed
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
    settings = _with_defaults(request.settings, origin.dtype)
    logits = _single_row(case)
    output = Output.parse(settings.output, settings.top_k) or Output.default(
        logits.shape[-1],
        case.adapter.task in ("classification", "masked", "causal"),
        settings.top_k,
    )
    if output.quantity == "hidden" and settings.direction in ("boundary", *OTHERS):
        output = Output()  # these look at classes, whatever is measured
    settings = replace(settings, output=output)
    if request.kind == "class" or settings.direction in ("boundary", "gradient"):
        _check_classes(logits)
    goals = case.objective.classes if request.kind == "class" else None
    coordinates = output.bind(logits, None if goals is None else goals[:, 0])
    everyone = torch.arange(len(case.batch))
    content = _existing(case, origin)
    scout = Level(case, space, origin, content, coordinates)
    selected = content
    if case.mask.shape[1]:
        selected = select(request.tokens, case.batch, lambda: _importance(scout, everyone))
    else:
        check_whole(request.tokens)
    corrected = bool(settings.correct)
    region = find_region(settings.within, case, space, origin)
    level = Level(case, space, origin, selected, coordinates, region if corrected else None)
    region.start(origin.double(), selected)  # an error where the start lies outside
    w = level.region.start(origin.double(), selected)
    seen = level.see(w, everyone)
    if request.kind == "stay" and settings.direction not in OTHERS:
        fewest = 1 if settings.metric == "blocks" else int(selected.sum(dim=1).min())
        _check_room(fewest * min(origin.shape[2], w.shape[2]), seen.y.shape[1])
    state = State(
        w=w.clone(),
        y=seen.y.clone(),
        logits=seen.logits.clone(),
        heading=torch.zeros_like(w),
        stride=torch.zeros(len(w), dtype=torch.float64, device=w.device),
        outcome=torch.zeros(len(w), dtype=torch.long),
        generators=_generators(case, request),
    )
    shown = min(_SHOWN if logits.shape[-1] > _MANY else _MANY, logits.shape[-1])
    classes = logits.topk(shown, dim=-1).indices
    if logits.shape[-1] <= _MANY:
        classes = classes.sort(dim=-1).values
    elif request.kind == "class":
        classes = _with_goal(classes, case)
    made = Plan(case, settings, level, coordinates, state, None, classes)
    made.stepper = _Steppers(made, request, space, region).make()
    return made


@dataclass(frozen=True)
class _Steppers:
    """Chooses what takes the steps."""

    plan: Plan
    request: Request
    space: Space
    region: Region

    def make(self) -> Any:
        settings, kind = self.plan.settings, self.request.kind
        typical = _typical(self.plan.level)
        longest = typical * (_PACE if settings.correct else _LONGEST)
        if settings.longest is not None:
            longest = torch.full_like(typical, settings.longest)
        if settings.direction == "boundary":
            leads = self._leads(kind)
            return ToBoundary(leads, self.plan.coordinates, longest, self.region)
        if settings.direction in OTHERS:
            return self._perturbed(kind, typical)
        if settings.correct:
            return self._inside(typical, longest)
        return self._textbook(typical, longest)

    def _inside(self, typical: Tensor, longest: Tensor) -> Inside:
        settings, state = self.plan.settings, self.plan.state
        if settings.step is not None:
            longest = torch.full_like(longest, float(settings.step))
        first = (_FIRST * typical).minimum(longest)
        return Inside(
            self.plan.level,
            self._reference(),
            state.y.clone(),
            settings.tolerance,  # type: ignore[arg-type]  # filled by _with_defaults
            first.cpu(),
            longest.cpu(),
            settings.zero,  # type: ignore[arg-type]
        )

    def _textbook(self, typical: Tensor, longest: Tensor) -> Textbook:
        settings, kind = self.plan.settings, self.request.kind
        solver = SOLVERS[settings.solver]
        stride = Stride(
            settings.step,  # type: ignore[arg-type]  # checked by resolve
            settings.scale,  # type: ignore[arg-type]
            longest,
            typical,
            settings.tolerance,  # type: ignore[arg-type]
            solver.order,
        )
        region = None if isinstance(self.region, Everywhere) else self.region
        return Textbook(
            self.plan.level,
            self._rule(kind),
            stride,
            solver,
            region,
            settings.metric == "blocks",
            settings.zero,  # type: ignore[arg-type]
            settings.absolute,
            self._predicted() if settings.allow != "class" else None,
        )

    def _rule(self, kind: str) -> Rule:
        settings, moving = self.plan.settings, self.plan.level.selected
        direction = settings.direction
        if kind == "stay" and direction in ("eigenvector", "released"):
            degrowth = self.plan.coordinates if settings.allow == "degrowth" else None
            return NullEigenvector(moving, direction == "released", degrowth)
        if settings.allow == "nondecreasing":
            coordinates, growth = self.plan.coordinates, settings.growth
            return NonDecreasing(self._reference(), moving, coordinates, self._predicted(), growth)
        if kind == "stay":
            return InKernel(self._reference())
        classes, sense = (self._class(), 1.0) if kind == "class" else (self._predicted(), -1.0)
        if direction == "lift":
            return Lift(self.plan.coordinates, classes, sense)
        index: Any = "uniform" if direction == "released" else direction
        sign: Any = "leave" if kind == "class" else settings.sign
        released = direction == "released"
        return Range(moving, self.plan.coordinates, classes, sense, index, sign, released)

    def _reference(self) -> Reference:
        settings, state = self.plan.settings, self.plan.state
        moving = self.plan.level.selected
        if settings.direction == "persistent":
            state.heading = draw(state, state.walking, moving)
            return Persistent(moving, settings.persistence)
        if settings.direction == "toward":
            return Toward(moving, self._other_input())
        if settings.direction == "away":
            return Away(moving, state.w.clone())
        return Fixed(moving) if settings.direction == "fixed" else Haar(moving)

    def _other_input(self) -> Tensor:
        """The state of the input to walk towards, which must have as many tokens."""
        case, level = self.plan.case, self.plan.level
        item = case.adapter.read(self.plan.settings.toward, case.target)
        batch = case.adapter.batch([item], case.target)
        point = self.space.start(batch)
        lengths = _existing(case, level.origin).sum(dim=1)
        if (lengths != point.shape[1]).any():
            raise ArgumentError(
                explain_error(
                    "the input to walk towards has another number of tokens",
                    got=f"{point.shape[1]} tokens, where the starts have {lengths.tolist()}",
                    expected="inputs of one length",
                    instead="direction='away'",
                )
            )
        whole = point.double().expand_as(level.origin)
        nearest = level.region.project(whole, torch.arange(len(whole)))
        return level.region.start(nearest, level.selected)

    def _perturbed(self, kind: str, typical: Tensor) -> Perturbed:
        settings, level = self.plan.settings, self.plan.level
        length = typical * float(settings.scale or 1.0)
        if isinstance(settings.step, int | float):
            length = torch.full_like(typical, float(settings.step))
        region = None if isinstance(self.region, Everywhere) else self.region
        rule: Any = {"trial": Trial, "isotropic": Isotropic}.get(str(settings.direction))
        if rule is not None:
            return Perturbed(level, rule(level.selected), length, region)
        odds = Output("log_odds").bind(self.plan.state.logits)
        own = Level(self.plan.case, self.space, level.origin, level.selected, odds)
        sign = 1.0 if kind == "stay" else -1.0
        return Perturbed(level, AlongGradient(own, level.selected, sign), length, region)

    def _class(self) -> Tensor:
        """The class to walk to, one an input."""
        return self.plan.case.objective.classes[:, 0]  # type: ignore[index]  # goals are classes

    def _predicted(self) -> Tensor:
        """The class that each input is predicted as at the start."""
        return self.plan.state.logits.argmax(dim=-1)

    def _leads(self, kind: str) -> Level:
        """The leads of the class to walk to, or of the likeliest others."""
        logits = self.plan.state.logits
        if kind == "class":
            candidates = self._class()[:, None]
        else:
            others = min(_SHOWN, logits.shape[-1] - 1)
            candidates = logits.topk(others + 1, dim=-1).indices[:, 1:]
        level = self.plan.level
        return Level(
            self.plan.case,
            self.space,
            level.origin,
            level.selected,
            Leads(Output("logits"), candidates),
            level.region,
        )


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


def _importance(level: Level, rows: Tensor) -> Tensor:
    """Algorithm 3 at the start (b t)."""
    seen, jacobian = level.linearise(level.origin.double(), rows)
    return block_importance(pulled_back(level.coordinates, seen.y, jacobian.double()))


def _existing(case: Case, origin: Tensor) -> Tensor:
    """The tokens that are there (b t); one for all of an image that has no patches."""
    if case.mask.shape[1]:
        return case.mask
    return torch.ones(origin.shape[:2], dtype=torch.bool, device=origin.device)


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


def _typical(level: Level) -> Tensor:
    """The median length of a moving token's vector, one an input."""
    sizes = level.origin.double().norm(dim=-1)
    found = [own[moving].median() for own, moving in zip(sizes, level.selected, strict=True)]
    return torch.stack(found).clamp(min=1e-6)


def _generators(case: Case, request: Request) -> list[torch.Generator]:
    """One source of randomness a walk; repeats of an input have their own."""
    return [
        torch.Generator().manual_seed(generator.initial_seed() + request.repeat(i))
        for i, generator in enumerate(case.generators)
    ]

"""From the rules of a walk to what takes its steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, explain_error
from pellucid.explorer.boundary import ToBoundary
from pellucid.explorer.checks import OTHERS
from pellucid.explorer.directions import Away, Fixed, Haar, Persistent, Reference, Toward
from pellucid.explorer.eigen import Lift, NonDecreasing, NullEigenvector, Range, Rule
from pellucid.explorer.eigen import Null as InKernel
from pellucid.explorer.inside import Inside
from pellucid.explorer.level import Level
from pellucid.explorer.perturbation import AlongGradient, Isotropic, Perturbed, Trial
from pellucid.explorer.regions import Everywhere, Region
from pellucid.explorer.selection import existing
from pellucid.explorer.solvers import SOLVERS
from pellucid.explorer.space import Space
from pellucid.explorer.state import draw
from pellucid.explorer.strides import Stride
from pellucid.explorer.textbook import Textbook
from pellucid.geometry.outputs import Leads, Output

if TYPE_CHECKING:
    from pellucid.explorer.plan import Plan

_RIVALS = 10  # classes whose boundaries a leaving walk looks at
_LONGEST = 0.5  # times the length of a typical token: no step is longer unless asked
_PACE = 0.1  # the same for a corrected walk, which keeps its pace for many steps
_FIRST = 1.0  # the first step, where such long ones are allowed


@dataclass(frozen=True)
class Steppers:
    """Chooses what takes the steps."""

    plan: Plan
    kind: str
    space: Space
    region: Region

    def make(self) -> Any:
        settings, kind = self.plan.settings, self.kind
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
        settings, kind = self.plan.settings, self.kind
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
        lengths = existing(case.mask, level.origin).sum(dim=1)
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
            others = min(_RIVALS, logits.shape[-1] - 1)
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


def _typical(level: Level) -> Tensor:
    """The median length of a moving token's vector, one an input."""
    sizes = level.origin.double().norm(dim=-1)
    found = [own[moving].median() for own, moving in zip(sizes, level.selected, strict=True)]
    return torch.stack(found).clamp(min=1e-6)

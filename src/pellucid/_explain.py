"""`explain`: the one place that knows models, methods and results together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast, get_args

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._batches import Progress, run_in_batches
from pellucid._case import Case
from pellucid._errors import ArgumentError, InputError, NumericalError, explain_error
from pellucid._inputs import each, gathered
from pellucid._meter import Meter
from pellucid._needs import require
from pellucid._provenance import provenance_of
from pellucid._results import Explanation, Unit
from pellucid._spec import Method, as_method, bound_parameters
from pellucid._target import Target
from pellucid._types import Attribution, Batch, Picture, Text
from pellucid._views import view_of
from pellucid._windows import explain_in_windows
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.adapters.text import LongText
from pellucid.methods import METHODS
from pellucid.record import precision

_SHOWN = 10  # labels kept with their probability
_NUMBERED = ("class", "token")  # units that have an index
_MANY = 1000  # classes up to which all logits are kept


@torch.inference_mode(False)
def explain(
    model: Any,
    inputs: Any,
    *,
    method: str | Callable[..., Any] = "gradient_x_input",
    target: Any = None,
    seed: int = 0,
    batch_size: int = 8,
    budget: int | None = None,
    seconds: float | None = None,
    progress: Progress = None,
    long: LongText = "refuse",
    **params: Any,
) -> Any:
    """Explain one input, or each of a list of them.

    Main arguments: `model` is what `load` or `adapt` returned; `inputs` is a text, a tuple of two
    texts (a pair), an image (path, PIL, array or tensor), or a list of such, which gives a list;
    `method` is a name from `list_methods()` or a function of a `Case`; `target` is a class by name
    or number, a `Target`, or a function of the model's output (None: what the model predicts).
    Further keywords are the method's own.

    Other arguments: `seed` decides all randomness; `batch_size` inputs go through the model at once
    (halved by itself when memory runs out); `budget` is the most model evaluations an input may
    cost, `seconds` the most time, after which methods that sample tell how far they came, and
    others raise `BudgetExceeded`; `progress` is True, False, a function of (done, total), or None
    for bars on a terminal; `long` says what happens to a text that does not fit: "refuse",
    "truncate", or "windows".
    """
    adapter = as_adapter(model)
    spec, settings = as_method(method, METHODS)
    params = bound_parameters(spec, settings | params)
    goal = Target.parse(target).with_default(
        "logit" if adapter.task == "regression" else spec.explains
    )
    seed, batch_size = integer("seed", seed, 0), integer("batch_size", batch_size, 1, 8)
    budget = None if budget is None else integer("budget", budget, 1, 1000)
    seconds = None if seconds is None else _checked_seconds(seconds)
    _check_policy(long)
    check_progress(progress)
    adapter.check_state()
    adapter.weights_hash()  # which finds bad weights, and is kept for the provenance
    require(adapter, spec, METHODS)
    engine = Engine(adapter, spec, params, seed, batch_size, budget, seconds)
    raw, several = gathered(inputs)
    options = {"long": long} if adapter.kind == "text" else {}
    items = each(raw, lambda one: adapter.read(one, goal, **options))
    fitting = iter(engine.explain_items([i for i in items if engine.fits(i)], goal, progress))
    found = [
        next(fitting) if engine.fits(item) else engine.explain_long(cast(Text, item), goal)
        for item in items
    ]
    return found if several else found[0]


@dataclass(frozen=True)
class Engine:
    """A model, a configured method, and how many inputs at a time."""

    adapter: Adapter
    spec: Method
    params: Mapping[str, Any]
    seed: int
    batch_size: int
    budget: int | None = None
    seconds: float | None = None

    def fits(self, item: Text | Picture) -> bool:
        """Whether the model can read the input as a whole."""
        longest = self.adapter.longest
        return longest is None or len(item.segments) <= longest

    def explain_items(
        self, items: Sequence[Text | Picture], target: Target, progress: Progress = False
    ) -> list[Explanation]:
        """Explain in batches of alike inputs."""

        def work(indices: list[int]) -> list[Explanation]:
            batch = self.adapter.batch([items[i] for i in indices], target)
            return self._explain_batch(batch, target, progress)

        return run_in_batches(items, work, self.batch_size, progress, self.adapter.largest_batch)

    def explain_long(self, text: Text, target: Target) -> Explanation:
        """Explain a text that does not fit in windows."""
        if self.adapter.task not in ("classification", "multilabel", "regression"):
            raise InputError(
                explain_error(
                    "a long text is read in windows only where each window has its own prediction",
                    got=f"{self.adapter.name}, which predicts tokens",
                    expected="a classifier or a regression",
                    instead="long='truncate'",
                )
            )

        def length(piece: str) -> int:
            return len(self.adapter.read(piece, target, long="windows").segments)

        def explain_texts(texts: list[str], goal: Target) -> list[Explanation]:
            read = [self.adapter.read(text, goal, long="truncate") for text in texts]
            return self.explain_items(read, goal)

        return explain_in_windows(
            text, cast(int, self.adapter.longest), target, explain_texts, length
        )

    def _explain_batch(self, batch: Batch, target: Target, progress: Progress) -> list[Explanation]:
        """Run the method on one batch and cut its answer into one explanation an input."""
        case = Case(
            self.adapter,
            batch,
            target,
            seed=self.seed,
            batch_size=self.batch_size,
            spec=self.spec,
            meter=Meter(len(batch), self.budget, seconds=self.seconds),
            progress=None if callable(progress) else progress,
        )
        began = time.perf_counter()
        with precision.formulas(self.adapter.device), self.adapter.noted() as remarks:
            attribution = attribution_of(case, self.spec, self.params)
            case.value  # noqa: B018  # decided here for methods that never ran the unchanged input
        seconds = (time.perf_counter() - began) / len(batch)
        return [
            _one(case, self.spec, self.params, attribution, row, seconds, remarks)
            for row in range(len(batch))
        ]


def attribution_of(case: Case, spec: Method, params: Mapping[str, Any]) -> Attribution:
    """What a method says of a case, its scores checked."""
    found = spec(case, **params)
    attribution = found if isinstance(found, Attribution) else Attribution(found)
    return replace(attribution, scores=_checked_scores(spec, case, attribution.scores))


def _checked_scores(spec: Method, case: Case, scores: Tensor) -> Tensor:
    """The scores on the CPU, finite, of the right shape, and zero on padding."""
    allowed: list[tuple[int, ...]] = [tuple(case.mask.shape)]
    if isinstance(case.batch.items[0], Picture):
        allowed.append((len(case.batch), *case.batch.items[0].view.shape[:2]))
    shape = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
    if shape not in allowed:
        raise ArgumentError(
            explain_error(
                f"method {spec.name!r} returned scores that fit nothing",
                got=shape,
                expected=" or ".join(map(str, allowed)) + ": one score a token, or one a pixel",
                instead="return case.sum_features(case.gradient(case.input()))",
            )
        )
    scores = scores.detach()
    if scores.dim() == 2:
        scores = scores.masked_fill(~case.mask.to(scores.device), 0.0)
    if not torch.isfinite(scores).all():
        raise NumericalError(
            explain_error(
                f"method {spec.name!r} gave scores that are not finite",
                got=f"{int((~torch.isfinite(scores)).sum())} of {scores.numel()} are not",
                expected="finite scores",
                instead="pellucid.load(..., dtype='float32'), or 'float64'",
            )
        )
    return scores.cpu()


def _one(
    case: Case,
    spec: Method,
    params: Mapping[str, Any],
    attribution: Attribution,
    row: int,
    seconds: float,
    remarks: Sequence[str],
) -> Explanation:
    """The explanation of one input of the batch."""
    item = case.batch.items[row]
    scores, real = attribution.scores, case.mask[row].cpu()
    own = scores[row][real] if scores.dim() == 2 else scores[row]
    extras = {name: _extra(case, found, row) for name, found in attribution.extras.items()}
    notes = attribution.notes[row] if attribution.notes else ()
    return view_of(extras)(
        scores=own.clone(),
        item=replace(item, notes=()),
        method=spec.name,
        params=dict(params),
        signed=spec.signed if attribution.signed is None else attribution.signed,
        target=None if case.target.function is not None else case.target,
        explains=case.target.describe(_unit(case)),
        label=_label(case, row),
        index=_index(case, row),
        unit=_unit(case),
        value=float(case.value[row]),
        prediction=_prediction(case, row),
        logits=_logits(case, row),
        provenance=provenance_of(case, row, seconds),
        extras=extras,
        notes=(*item.notes, *notes, *remarks),
    )


def _extra(case: Case, found: Tensor | Sequence[Tensor], row: int) -> Tensor:
    """What else is said of one input; numbers of tokens lose those on padding."""
    own = found[row].detach().cpu()
    if isinstance(found, Tensor) and found.shape == case.mask.shape:
        own = own[case.mask[row].cpu()]
    return own.clone()


def _unit(case: Case) -> Unit:
    """What kind of thing was explained."""
    if case.target.function is not None or case.adapter.task == "regression":
        return "value"
    if case.target.text is not None:
        return "continuation"
    return "token" if case.adapter.task in ("masked", "causal") else "class"


def _index(case: Case, row: int) -> int | None:
    """The number of the class or token that was explained, if it was one."""
    classes = case.objective.classes
    return int(classes[row, 0]) if classes is not None and _unit(case) in _NUMBERED else None


def _label(case: Case, row: int) -> str:
    """What was explained, by name."""
    index = _index(case, row)
    return case.target.text or "value" if index is None else case.adapter.label_name(index)


def _prediction(case: Case, row: int) -> dict[str, float]:
    """The most probable labels, or the value of a regression."""
    if _unit(case) == "value":
        return {"value": float(case.value[row])}
    rows = case.rows[row, 0].double()  # c
    independent = case.adapter.task == "multilabel"
    probabilities = rows.sigmoid() if independent else rows.softmax(dim=-1)
    top = probabilities.topk(min(_SHOWN, len(rows)))
    found: dict[str, float] = {}
    for index, probability in zip(top.indices.tolist(), top.values.tolist(), strict=True):
        name = case.adapter.label_name(index)
        found[name if name not in found else f"{name} (number {index})"] = probability
    return found


def _logits(case: Case, row: int) -> Tensor:
    rows = case.rows[row, 0].float().cpu()
    return rows.clone() if len(rows) <= _MANY else rows.new_empty(0)


def _checked_seconds(seconds: Any) -> float:
    found = real("seconds", seconds, 10.0)
    if found <= 0:
        raise ArgumentError(
            explain_error(
                "an explanation takes time",
                got=f"seconds={seconds!r}",
                expected="a number above 0",
                instead="seconds=10",
            )
        )
    return found


def _check_policy(long: Any) -> None:
    if long not in get_args(LongText):
        raise ArgumentError(
            explain_error(
                "unknown policy for long texts",
                got=f"long={long!r}",
                expected=" or ".join(map(repr, get_args(LongText))),
                instead="long='truncate'",
            )
        )


def check_progress(progress: Any) -> None:
    """Refuse a way of showing progress that is none."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(
            explain_error(
                "progress cannot be shown like this",
                got=f"progress={progress!r}",
                expected="True, False, None, or a function of (done, total)",
                instead="progress=True",
            )
        )

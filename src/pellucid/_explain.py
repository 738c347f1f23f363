"""`explain`: the one place that knows models, methods and results together."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Any, cast

import torch
from torch import Tensor

from pellucid._batches import Progress, run_in_batches
from pellucid._case import Case, Meter
from pellucid._errors import ArgumentError, NumericalError, explain_error
from pellucid._needs import require
from pellucid._results import Explanation, Provenance, Unit
from pellucid._spec import Method, as_method, bound_parameters
from pellucid._target import Target
from pellucid._types import Attribution, Picture, Text
from pellucid._windows import explain_in_windows
from pellucid.adapters import as_adapter
from pellucid.adapters.base import Adapter
from pellucid.adapters.text import LongText
from pellucid.methods import METHODS

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
    cost; `progress` is True, False, a function of (done, total), or None for a bar on a terminal;
    `long` says what happens to a text that does not fit: "refuse", "truncate", or "windows".
    """
    adapter = as_adapter(model)
    spec, settings = as_method(method, METHODS)
    params = bound_parameters(spec, settings | params)
    goal = Target.parse(target).with_default(spec.explains)
    _check(seed, batch_size, budget, long)
    require(adapter, spec)
    adapter.check_state()
    several = isinstance(inputs, list | Iterator)
    raw = list(inputs) if several else [inputs]
    items = [_item(adapter, one, goal, long) for one in raw]

    def explain_items(some: Sequence[Text | Picture], report: Progress) -> list[Explanation]:
        def work(indices: list[int]) -> list[Explanation]:
            batch = adapter.encode_items([some[i] for i in indices], goal)
            meter = Meter(len(batch), budget)
            case = Case(
                adapter, batch, goal, seed=seed, batch_size=batch_size, spec=spec, meter=meter
            )
            return _explain_case(case, spec, params)

        return run_in_batches(some, work, batch_size, report, adapter.largest_batch)

    def explain_texts(texts: list[str]) -> list[Explanation]:
        return explain_items([_item(adapter, text, goal, "truncate") for text in texts], False)

    fitting = [item for item in items if _fits(item, adapter.longest)]
    found = iter(explain_items(fitting, progress))
    explained = [
        next(found)
        if _fits(item, adapter.longest)
        else explain_in_windows(cast(Text, item), cast(int, adapter.longest), explain_texts)
        for item in items
    ]
    return explained if several else explained[0]


def _item(adapter: Adapter, raw: Any, target: Target, long: LongText) -> Text | Picture:
    """What the input is, checked, before any work is done."""
    options = {"long": long} if adapter.kind == "text" else {}
    return adapter.encode([raw], target, **options).items[0]


def _fits(item: Text | Picture, longest: int | None) -> bool:
    return longest is None or len(item.segments) <= longest


def _explain_case(case: Case, spec: Method, params: Mapping[str, Any]) -> list[Explanation]:
    """Run the method on one batch and cut its answer into one explanation an input."""
    batch = case.batch
    began = time.perf_counter()
    found = spec(case, **params)
    attribution = found if isinstance(found, Attribution) else Attribution(found)
    scores = _checked_scores(spec, case, attribution.scores)
    case.value  # noqa: B018  # methods that never ran the unchanged input: do it now, inside the clock
    seconds = (time.perf_counter() - began) / len(batch)
    return [
        _one(case, spec, params, attribution, scores, row, seconds) for row in range(len(batch))
    ]


def _checked_scores(spec: Method, case: Case, scores: Tensor) -> Tensor:
    """The scores on the CPU, finite, of the right shape, and zero on padding."""
    allowed: list[tuple[int, ...]] = [tuple(case.mask.shape)]
    if isinstance(case.batch.items[0], Picture):
        allowed.append((len(case.batch), *case.batch.items[0].view.shape[:2]))
    if tuple(scores.shape) not in allowed:
        raise ArgumentError(
            explain_error(
                f"method {spec.name!r} returned scores of a shape that fits nothing",
                got=tuple(scores.shape),
                expected=" or ".join(map(str, allowed)) + ": one score a token, or one a pixel",
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
    scores: Tensor,
    row: int,
    seconds: float,
) -> Explanation:
    """The explanation of one input of the batch."""
    item = case.batch.items[row]
    real = case.mask[row].cpu()
    own = scores[row][real] if scores.dim() == 2 else scores[row]
    notes = attribution.notes[row] if attribution.notes else ()
    return Explanation(
        scores=own.clone(),
        item=item,
        method=spec.name,
        params=dict(params),
        signed=spec.signed,
        target=case.target.describe(_unit(case)),
        label=_label(case, row),
        index=_index(case, row),
        unit=_unit(case),
        value=float(case.value[row]),
        prediction=_prediction(case, row),
        logits=_logits(case, row),
        provenance=_provenance(case, row, seconds),
        extras={name: tensor[row].detach().cpu() for name, tensor in attribution.extras.items()},
        notes=(*item.notes, *notes),
    )


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


def _provenance(case: Case, row: int, seconds: float) -> Provenance:
    adapter = case.adapter
    return Provenance(
        model=adapter.name,
        weights=adapter.weights_hash(),
        dtype=str(adapter.dtype).removeprefix("torch."),
        device=str(adapter.device),
        seed=case.seed,
        seconds=seconds,
        forwards=int(case.meter.forwards[row]),
        backwards=case.meter.backwards,
        versions=_versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


@cache
def _versions() -> dict[str, str]:
    names = ("pellucid", "torch", "transformers")
    return {name: version(name) for name in names} | {"python": platform.python_version()}


def _check(seed: Any, batch_size: Any, budget: Any, long: Any) -> None:
    """The engine's own arguments."""
    for name, value, least in (
        ("seed", seed, 0),
        ("batch_size", batch_size, 1),
        ("budget", budget, 1),
    ):
        if name == "budget" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ArgumentError(
                explain_error(
                    f"{name} is not a number that can be used",
                    got=f"{name}={value!r}",
                    expected=f"an integer of at least {least}",
                    instead=f"{name}={max(least, 8) if name != 'seed' else 0}",
                )
            )
    if long not in ("refuse", "truncate", "windows"):
        raise ArgumentError(
            explain_error(
                "unknown policy for long texts",
                got=f"long={long!r}",
                expected="'refuse', 'truncate' or 'windows'",
                instead="long='truncate'",
            )
        )

"""What `evaluate` reads of data: an input, and what is known to be true of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._images import read_image
from pellucid._inputs import gathered
from pellucid._results import Explanation
from pellucid._spec import Metric, TruthKind
from pellucid._target import Target
from pellucid._truth import class_of, read_truths
from pellucid._types import Picture, Text
from pellucid.adapters.base import Adapter
from pellucid.data.masks import boxes_to_mask


class Sample(Protocol):
    """One input with its label and what else is known of it, by kind ("mask", "boxes", ...)."""

    @property
    def input(self) -> Any: ...
    @property
    def label(self) -> int | str | None: ...
    @property
    def truth(self) -> Mapping[str, Any]: ...
    @property
    def id(self) -> str: ...


@dataclass(frozen=True)
class _Bare:
    """An input of which nothing more is known."""

    input: Any
    id: str
    label: None = None
    truth: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ReadSample:
    """A sample as the model reads it, or why it cannot be read."""

    sample: Sample
    item: Text | Picture | None
    skipped: str = ""
    _truths: dict[str, Any] = field(default_factory=dict)

    def class_in(self, adapter: Adapter) -> int:
        """The number of the sample's label among the classes of the model."""
        if self.sample.label is None:
            raise InputError("no label is given")
        return class_of(self.sample.label, adapter)

    def truth_for(self, spec: Metric, explanation: Explanation, adapter: Adapter) -> Any:
        """What the metric compares the explanation of this sample with; each kind is read once."""
        kind = spec.truth
        if kind is None:
            return None
        if kind not in self._truths:
            raw = truth_of(self.sample, kind)
            if raw is None:
                raise InputError(f"no {kind} is given")
            (self._truths[kind],) = read_truths([raw], [explanation], True, spec, adapter)
        return self._truths[kind]


def samples_of(data: Any) -> Sequence[Sample]:
    """The data as samples, which are fetched one at a time; plain inputs become bare samples."""
    indexed = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    plain = isinstance(data, str | bytes | Mapping)
    if indexed and not plain and len(data) and hasattr(data[0], "input"):
        return data  # type: ignore[no-any-return]
    found = gathered(data)[0]
    if not found:
        raise ArgumentError(
            explain_error(
                "there is nothing to evaluate",
                got=f"data={data!r}",
                expected="samples, or a list of inputs",
                instead='pellucid.evaluate(model, ["a fine film"], methods=[...], metrics=[...])',
            )
        )
    if hasattr(found[0], "input"):
        return found
    return [_Bare(one, str(number)) for number, one in enumerate(found)]


def read_sample(adapter: Adapter, sample: Sample, target: Target) -> ReadSample:
    """The sample as the model reads it."""
    try:
        return ReadSample(sample, adapter.read(sample.input, target))
    except InputError as error:
        return ReadSample(sample, None, reason_of(error))


def reason_of(error: Exception) -> str:
    """Why a sample is skipped: what its error says first, which is the same for all of its kind."""
    return str(error).splitlines()[0]


def truth_of(sample: Sample, kind: TruthKind) -> Any:
    """What the sample says of this kind, or None; the union of its boxes is a mask."""
    if kind == "label":
        return sample.label
    if kind == "mask" and "mask" not in sample.truth and "boxes" in sample.truth:
        width, height = read_image(sample.input)[0].size
        return boxes_to_mask(sample.truth["boxes"], (height, width))
    found = sample.truth.get(kind)
    if found is not None and kind in ("rationale", "attention") and getattr(sample, "words", None):
        return sample.spans, found  # type: ignore[attr-defined]
    return found


def check_truths(samples: Sequence[Sample], metrics: Sequence[Metric]) -> None:
    """Refuse metrics that compare with what no sample says."""
    for spec in metrics:
        if spec.truth is not None and not _any_has(samples, spec.truth):
            raise _nothing_known(f"metric {spec.name!r}", spec.truth, samples)


def check_labels(samples: Sequence[Sample]) -> None:
    """Refuse to explain labels that no sample has."""
    if not _any_has(samples, "label"):
        raise _nothing_known("target='label'", "label", samples)


def _nothing_known(who: str, kind: TruthKind, samples: Sequence[Sample]) -> ArgumentError:
    given = sorted({name for sample in samples for name in sample.truth})
    return ArgumentError(
        explain_error(
            f"{who} needs the {kind} of each sample, and no sample has one",
            got=f"truth of {', '.join(given)}" if given else "samples without truth",
            expected=_WHERE.get(kind, f'sample.truth["{kind}"]'),
            instead=f"leave {who} out, or give samples with a {kind}",
        )
    )


_WHERE = {"label": "sample.label", "mask": 'sample.truth["mask"] or sample.truth["boxes"]'}


def _any_has(samples: Sequence[Sample], kind: TruthKind) -> bool:
    names = {kind, "boxes"} if kind == "mask" else {kind}
    if kind == "label":
        return any(sample.label is not None for sample in samples)
    return any(names & set(sample.truth) for sample in samples)

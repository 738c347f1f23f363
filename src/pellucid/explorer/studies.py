"""SiMEC, SiMExp and what they are compared with, on the same inputs, in the papers' columns.

A study is made of units, one walk each: an input, an algorithm and a repetition. A unit's result is
plain numbers, so units can be run apart and put into one table later. The baselines look at the
SiMEC walk from their input: their steps are as long as its mean step (the published version), and
they may take as long as it did instead of as many steps (SiMEC, section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from pellucid._arguments import integer
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid._inputs import gathered
from pellucid._measure_walk import measure_walk
from pellucid._statistics import Tested, t_test, welch
from pellucid._trajectory import Trajectory
from pellucid.adapters import as_adapter
from pellucid.explorer.explore import explore
from pellucid.explorer.settings import PRESETS
from pellucid.metrics.walks import WALK_METRICS
from pellucid.metrics.walks.table import WalkTable, walk_table

Equal = Literal["steps", "seconds"]
STAYING, LEAVING = "SiMEC", "SiMExp"


@dataclass(frozen=True)
class Algorithm:
    """One way of walking; a baseline knows nothing of the metric and takes no preset."""

    goal: str
    direction: str | None = None  # of a baseline

    @property
    def is_baseline(self) -> bool:
        """Whether its steps are made as long as SiMEC's."""
        return self.direction is not None


ALGORITHMS: dict[str, Algorithm] = {
    STAYING: Algorithm("stay"),
    LEAVING: Algorithm("leave"),
    "perturbation": Algorithm("stay", "trial"),
    "gradient, stay": Algorithm("stay", "gradient"),
    "gradient, leave": Algorithm("leave", "gradient"),
    "isotropic": Algorithm("stay", "isotropic"),
}


@dataclass(frozen=True)
class Column:
    """One metric with its parameters, and which of the numbers beside it are columns as well."""

    metric: str
    params: Mapping[str, Any]
    more: tuple[str, ...] = ()


def point_columns(stride: int, top: int | None) -> dict[str, Column]:
    """What is measured of the points of a walk, by heading."""
    strided = {"stride": stride}
    ranked = {"stride": stride, "top": top}
    return {
        "prediction_changes": Column("prediction_changes", strided),
        "ranking_changes": Column("ranking_changes", ranked),
        "ranking_correlation": Column("ranking_correlation", ranked),
        "first_change": Column("first_change", strided),
        "original_probability": Column("original_probability", strided),
        "top_probability": Column("top_probability", strided),
        "probability_drift": Column("probability_drift", {}),
        "seconds_per_token": Column("seconds_per_token", {}),
    }


def decoded_columns(stride: int, top: int | None) -> dict[str, Column]:
    """What is measured of the inputs that the points were decoded to, and of both together."""
    strided = {"stride": stride}
    told = {"stride": stride, "of": "decoded"}
    ranked = told | {"top": top}
    return {
        "prediction_changes, decoded": Column("prediction_changes", told),
        "ranking_changes, decoded": Column("ranking_changes", ranked),
        "ranking_correlation, decoded": Column("ranking_correlation", ranked),
        "first_change, decoded": Column("first_change", told),
        "wasserstein, nominal": Column("wasserstein", strided | {"ground": "nominal"}),
        "wasserstein, index": Column("wasserstein", strided | {"ground": "index"}),
        "wasserstein, l1": Column("wasserstein", strided | {"ground": "l1"}, ("median",)),
        "decoded_correlation": Column("decoded_correlation", strided, ("p",)),
        "catch_up": Column("catch_up", strided, ("events", "matched")),
        "catch_up_delay": Column("catch_up_delay", strided),
        "pixel_change": Column("pixel_change", strided),
        "token_change": Column("token_change", strided),
        "flip_rate": Column("flip_rate", {}),
        "probability_changed": Column("probability_changed", {}),
        "probability_stayed": Column("probability_stayed", {}),
        "pictures_per_second": Column("pictures_per_second", {}),
        "informative_share": Column("informative_share", {}),
        "informative_per_second": Column("informative_per_second", {}),
    }


_DESCRIBED = ("steps", "seconds", "mean_step")
_VOLUMES = ("volume_ratio, log10", "volume_ratio, log10, own axes")


def headings() -> dict[str, str | None]:
    """Every column that a unit can have, with the metric that it is; a plain count is none."""
    columns = {**point_columns(1, None), **decoded_columns(1, None)}
    found: dict[str, str | None] = dict.fromkeys(_DESCRIBED)
    for heading, column in columns.items():
        found[heading] = column.metric
        found |= {f"{heading}, {name}": column.metric for name in column.more}
    return found | dict.fromkeys(_VOLUMES, "volume_ratio")


@dataclass(frozen=True, eq=False)
class Unit:
    """One walk of a study, as numbers by column, and as reasons where there is none."""

    algorithm: str
    repetition: int
    numbers: dict[str, float]
    skipped: dict[str, str]
    walk: Trajectory | None = None  # of a unit alone; a study keeps the numbers

    @property
    def row(self) -> dict[str, float | str]:
        """Numbers and reasons in one, as a table is made of."""
        return {**self.numbers, **self.skipped}


@dataclass(frozen=True)
class Significance:
    """A test that the published tables print beside a number."""

    name: str
    metric: str
    test: str
    result: Tested

    def __str__(self) -> str:
        found = self.result
        told = found.skipped if found.p is None else f"t = {found.statistic:.3g}, p = {found.p:.2g}"
        return f"{self.name}, {self.metric} ({self.test}): {told}"


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """All units, and what they come to."""

    units: tuple[Unit, ...]
    table: WalkTable
    tests: tuple[Significance, ...]

    def __repr__(self) -> str:
        return "\n".join([repr(self.table), *map(str, self.tests)])


def walk_unit(
    model: Any,
    item: Any,
    algorithm: str,
    *,
    repetition: int = 0,
    beside: Trajectory | None = None,
    equal: Equal = "steps",
    steps: int = 1000,
    save_every: int = 10,
    stride: int | None = None,
    preset: str | None = "published",
    top: int | None = None,
    decode: bool = True,
    mlm: Any = None,
    seed: int = 0,
    **rules: Any,
) -> Unit:
    """One walk from one input by one of `ALGORITHMS`, measured.

    Main arguments: `repetition` draws other directions; `beside` is the SiMEC walk from the same
    input, which volumes are compared with and which a baseline keeps step with: as many `steps`, or
    with `equal="seconds"` as long a time; `mlm` is the masked language model that decodes texts;
    `rules` are those of `explore` (`tokens`, `space`, `scale`, ...), of which a baseline takes what
    says where it walks.

    Other arguments: `stride` is that of the metrics (None: `save_every`); `top` classes are ranked;
    with `decode=False` nothing is decoded and those columns are left out.
    """
    chosen = _algorithm(algorithm)
    seed, repetition = integer("seed", seed, 0), integer("repetition", repetition, 0)
    if equal not in get_args(Equal):
        raise ArgumentError(unknown_name("budget", equal, get_args(Equal), write="equal={!r}"))
    asked: dict[str, Any] = {
        "goal": chosen.goal,
        "save_every": save_every,
        "seed": seed + repetition,
    }
    asked |= _baseline(chosen, preset, rules, beside) if chosen.is_baseline else rules
    if not chosen.is_baseline:
        asked["preset"] = preset
    walk = explore(model, item, steps=steps, **asked)
    if chosen.is_baseline and equal == "seconds":
        walk = explore(model, item, steps=_as_long(walk, beside), **asked)
    stride = save_every if stride is None else stride
    found = _described(walk) | _measured(walk, point_columns(stride, top))
    if decode:
        options = {} if mlm is None else {"mlm": mlm}
        prompts = walk.alternatives(**options) if walk.kind == "text" else None
        beside_it = {"decoded": walk.decode(**options), "prompts": prompts}
        found |= _measured(walk, decoded_columns(stride, top), **beside_it)
    if beside is not None and algorithm == LEAVING:
        found |= _volumes(walk, beside)
    numbers = {name: value for name, value in found.items() if not isinstance(value, str)}
    skipped = {name: value for name, value in found.items() if isinstance(value, str)}
    return Unit(algorithm, repetition, numbers, skipped, walk)


def walk_study(
    model: Any,
    inputs: Any,
    *,
    algorithms: Sequence[str] = (STAYING, LEAVING, "perturbation"),
    repetitions: int = 3,
    report: Callable[[Unit], None] | None = None,
    **options: Any,
) -> Study:
    """All units of these inputs, algorithms and repetitions, in one table.

    `options` are those of `walk_unit`; `report` is called with every unit when it is done, while it
    still has its walk. SiMEC walks first, since the others are compared with it.
    """
    repetitions = integer("repetitions", repetitions, 1, 3)
    adapter = as_adapter(model)
    items, _ = gathered(inputs)
    order = sorted(dict.fromkeys(algorithms), key=lambda name: name != STAYING)
    for name in order:
        _algorithm(name)
    units: list[Unit] = []
    for item in items:
        for repetition in range(repetitions):
            beside = None
            for name in order:
                unit = walk_unit(
                    adapter, item, name, repetition=repetition, beside=beside, **options
                )
                beside = unit.walk if name == STAYING else beside
                units.append(replace(unit, walk=None))
                if report is not None:
                    report(unit)
    return study_of(units)


def study_of(units: Sequence[Unit]) -> Study:
    """The table and the tests of units, wherever they were run."""
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(unit.algorithm, []).append(unit)
    table = walk_table({name: [unit.row for unit in own] for name, own in groups.items()})
    return Study(tuple(units), table, tuple(_tests(groups)))


def _tests(groups: Mapping[str, Sequence[Unit]]) -> list[Significance]:
    """Student's test of changes against none, and Welch's of the volumes of both algorithms."""
    found = []
    for name, units in groups.items():
        for metric in ("prediction_changes", "ranking_changes"):
            values = [unit.numbers[metric] for unit in units if metric in unit.numbers]
            found.append(Significance(name, metric, "Student, mean 0", t_test(values)))
    sides = [
        [unit.numbers[key] for unit in groups.get(LEAVING, ()) if key in unit.numbers]
        for key in ("log10_volume", "log10_volume_other")
    ]
    if any(sides):
        found.append(Significance(LEAVING, "log10_volume", f"Welch, {STAYING}", welch(*sides)))
    return found


def _algorithm(name: str) -> Algorithm:
    if name not in ALGORITHMS:
        raise ArgumentError(unknown_name("algorithm", name, ALGORITHMS, write="{!r}"))
    return ALGORITHMS[name]


def _baseline(
    chosen: Algorithm, preset: str | None, rules: Mapping[str, Any], beside: Trajectory | None
) -> dict[str, Any]:
    """Where a baseline walks, and how long its steps are."""
    where = {name: rules[name] for name in ("tokens", "space", "within") if name in rules}
    within = None if preset is None else PRESETS.get(preset, {}).get("within")
    found = {"direction": chosen.direction, "within": within} | where
    if beside is not None and beside.steps:
        mean = float(beside.series["step"][1:].mean())
        if mean > 0:
            found["step"] = mean
    return found


def _as_long(walk: Trajectory, beside: Trajectory | None) -> int:
    """How many steps a walk like this one takes in the time of the other."""
    if beside is None:
        raise ArgumentError(
            explain_error(
                "a baseline keeps time with another walk",
                got="equal='seconds' without a walk beside",
                expected="the SiMEC walk from the same input",
                instead="beside=walk_unit(model, item, 'SiMEC').walk, or equal='steps'",
            )
        )
    pace = walk.provenance.seconds / max(walk.steps, 1)
    return max(1, round(beside.provenance.seconds / pace))


def _described(walk: Trajectory) -> dict[str, float | str]:
    """What is needed to read the rest: how many steps, how long they took and were."""
    mean = float(walk.series["step"][1:].mean()) if walk.steps else "no step was taken"
    told = walk.steps, walk.provenance.seconds, mean
    return dict(zip(_DESCRIBED, told, strict=True))


def _measured(
    walk: Trajectory, columns: Mapping[str, Column], **beside: Any
) -> dict[str, float | str]:
    """The columns for this kind of input, as numbers or as the reasons why there are none."""
    found: dict[str, float | str] = {}
    for heading, column in columns.items():
        if walk.kind in WALK_METRICS[column.metric].kinds:
            told = measure_walk(walk, metric=column.metric, **beside, **column.params)
            found[heading] = told.skipped or told.value
            for name in column.more:
                if name in told.more:
                    found[f"{heading}, {name}"] = told.more[name]
    return found


def _volumes(walk: Trajectory, beside: Trajectory) -> dict[str, float | str]:
    """The ratio of the volumes explored, and both along their common axes."""
    found = measure_walk(walk, metric="volume_ratio", other=beside)
    volumes = {key: value for key, value in found.more.items() if key.startswith("log10")}
    apart = measure_walk(walk, metric="volume_ratio", other=beside, axes="own")
    return {
        _VOLUMES[0]: found.skipped or found.value,
        _VOLUMES[1]: apart.skipped or apart.value,
        **volumes,
    }

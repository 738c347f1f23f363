"""What is known of the models and the data of a plan once they have been looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pellucid._json import plain
from pellucid.bench.plan import Plan
from pellucid.bench.units import key_of


@dataclass(frozen=True)
class ModelFacts:
    """What is known of a model once it has been loaded."""

    name: str  # as the model calls itself
    kind: str
    weights: str
    dtype: str


@dataclass(frozen=True)
class DataFacts:
    """What is known of a data set once it has been read."""

    kind: str
    samples: int
    chunks: tuple[str, ...]  # a fingerprint of each


def about_inputs(
    plan: Plan, models: Mapping[str, ModelFacts], data: Mapping[str, DataFacts]
) -> dict[str, Any]:
    """Where models and data come from, for the tables."""
    return {
        "models": {
            entry.name: {"load": entry.what, **asdict(models[entry.name])} for entry in plan.models
        },
        "data": {
            entry.name: {
                "read": entry.what,
                "options": plain(entry.options),
                "samples": data[entry.name].samples,
                "fingerprint": key_of({"chunks": data[entry.name].chunks}),
            }
            for entry in plan.data
        },
        "variables": plain(plan.variables),
        "published": [one.plain() for one in plan.published],
    }

"""Where numbers come from: model, versions, type, device, seed, time and passes."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version

import pellucid
from pellucid._case import Case
from pellucid._results import Provenance
from pellucid.adapters.base import Adapter
from pellucid.record import precision


def provenance_of(case: Case, row: int, seconds: float) -> Provenance:
    """Where the numbers of one input of a batch come from; `seconds` is its share of the time."""
    adapter = case.adapter
    return Provenance(
        model=adapter.name,
        weights=adapter.weights_hash(),
        dtype=_dtype(adapter),
        device=str(adapter.device),
        seed=case.seed,
        seconds=seconds,
        forwards=int(case.meter.forwards[row]),
        backwards=case.meter.backwards,
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _dtype(adapter: Adapter) -> str:
    """The type of the weights, and that of autocast where the caller had it on."""
    names = [adapter.dtype, precision.caller_autocast(adapter.device)]
    return ", autocast ".join(str(n).removeprefix("torch.") for n in names if n is not None)


@cache
def versions() -> dict[str, str]:
    """Of pellucid, of the libraries that compute, and of Python."""
    libraries = {name: version(name) for name in ("torch", "transformers")}
    return {
        "pellucid": pellucid.__version__,
        **libraries,
        "python": platform.python_version(),
    }

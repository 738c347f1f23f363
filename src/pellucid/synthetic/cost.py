"""What an explanation costs. Leemann et al., TMLR 2024, Tables 2 and 13."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from pellucid._arguments import integer
from pellucid._errors import InputError, explain_error
from pellucid._explain import explain
from pellucid.synthetic.repeated import Row
from pellucid.synthetic.spread import standard_error


def runtime_row(
    model: Any,
    texts: Sequence[str],
    method: str | Callable[..., Any],
    *,
    warm: int = 3,
    batch_size: int = 32,
    **params: Any,
) -> Row:
    """Seconds, passes and tokens of one explanation, one text at a time.

    The first texts are explained `warm` times before, unmeasured. The clock runs from ids to scores
    on the CPU, which a GPU must have finished; `batch_size` versions of a text go through at once.
    """
    if not texts:
        raise InputError(
            explain_error(
                "nothing was timed",
                got="texts=[]",
                expected="at least one text",
                instead="texts=['a fine film']",
            )
        )
    options = {"method": method, "batch_size": batch_size, "progress": False, **params}
    for i in range(integer("warm", warm, 0, 3)):
        explain(model, texts[i % len(texts)], **options)
    found = [explain(model, text, **options) for text in texts]
    seconds = [one.provenance.seconds for one in found]
    return {
        "seconds": fmean(seconds),
        "seconds_se": standard_error(seconds),
        "forwards": fmean(one.provenance.forwards for one in found),
        "backwards": fmean(one.provenance.backwards for one in found),
        "tokens": fmean(len(one.segments) for one in found),
        "n": len(found),
    }

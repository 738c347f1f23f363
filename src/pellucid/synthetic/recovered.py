"""Whether the SLALOM that made the labels is found again in a model that learnt them.

Leemann et al., TMLR 2024, Figures 4c and d, Tables 7 and 8.
"""

from __future__ import annotations

import math
from typing import Any

from pellucid._errors import ArgumentError, explain_error
from pellucid.surrogates import Slalom, fit_error, recovery_error
from pellucid.synthetic.asking import asking
from pellucid.synthetic.repeated import Row
from pellucid.synthetic.sequences import Data


def recovery_row(model: Any, data: Data, fresh: Data, **settings: Any) -> Row:
    """A SLALOM fitted to the model's log-odds on `data`, against the truth of the data.

    Its outputs are compared on `fresh`, its values and centred importances word by word.
    `settings` are those of `Slalom.fit`.
    """
    if not isinstance(data.truth, Slalom):
        raise ArgumentError(
            explain_error(
                "only a SLALOM has values and importances to be recovered",
                got=f"data drawn from a {type(data.truth).__name__}",
                expected="data of slalom_data",
                instead="data=pellucid.synthetic.slalom_data(10_000)",
            )
        )
    units = data.truth.units
    found = Slalom.fit(data.sequences, asking(model)(data.sequences), units=units, **settings)
    return distance_row(found, data.truth, fresh)


def distance_row(found: Slalom, truth: Slalom, fresh: Data) -> Row:
    """Errors of outputs and of parameters of a SLALOM that was recovered.

    `logit_bias` is what the authors' notebook prints as a root mean squared error.
    """
    logits = fit_error(found, fresh.sequences, truth.predict(fresh.sequences))
    parameters = recovery_error(found, truth)
    return {
        "logit_mse": logits.mse,
        "logit_rmse": logits.rmse,
        "logit_bias": logits.bias,
        "parameter_mse": parameters,
        "parameter_rmse": math.sqrt(parameters),
    }

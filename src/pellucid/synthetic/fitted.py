"""Which function describes a model's outputs. Leemann et al., TMLR 2024, Table 6, Figures 4a, b."""

from __future__ import annotations

from typing import Any

from pellucid.surrogates import Gam, Linear, Slalom, fit_error
from pellucid.synthetic.asking import asking
from pellucid.synthetic.repeated import Row
from pellucid.synthetic.sequences import Data

PAPERS = {"solver": "adam", "rate": 2e-3, "batch": 32, "epochs": 100}  # of its SLALOM, for Table 6


def surrogate_row(model: Any, data: Data, fresh: Data, **settings: Any) -> Row:
    """Mean squared errors on `fresh` of a linear, an additive and a SLALOM surrogate.

    All three are fitted to the model's log-odds on `data`, the additive one with a weight for each
    word at each position and a penalty of 0.01. `settings` are those of `Slalom.fit`; the paper's
    are `PAPERS`. `variance` is the error of the mean log-odds, which knows no word.
    """
    ask = asking(model)
    sequences, log_odds = data.sequences, ask(data.sequences)
    target = ask(fresh.sequences)
    fits: dict[str, Linear | Gam | Slalom] = {
        "linear": Linear.fit(sequences, log_odds),
        "gam": Gam.fit(sequences, log_odds),
        "slalom": Slalom.fit(sequences, log_odds, **settings),
    }
    row = {f"{name}_mse": fit_error(fit, fresh.sequences, target).mse for name, fit in fits.items()}
    return row | {"variance": float((target - log_odds.mean()).square().mean())}

"""Data whose truth is known, and models trained on it from nothing."""

from __future__ import annotations

from pellucid.synthetic.asking import asking
from pellucid.synthetic.linear import linear_data, linear_truth
from pellucid.synthetic.sequences import Data
from pellucid.synthetic.slalom import slalom_data, slalom_truth
from pellucid.synthetic.train import planted, train

__all__ = [
    "Data",
    "asking",
    "linear_data",
    "linear_truth",
    "planted",
    "slalom_data",
    "slalom_truth",
    "train",
]

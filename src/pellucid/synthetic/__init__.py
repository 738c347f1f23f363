"""Data whose truth is known, models trained on it from nothing, and the experiments on both.

Leemann et al., TMLR 2024, section 6 and appendices A, E and F. An experiment takes a model and
gives one row of numbers; what trains the models and repeats the runs is up to the caller.
"""

from __future__ import annotations

from pellucid.synthetic.asking import asking
from pellucid.synthetic.cost import runtime_row
from pellucid.synthetic.counterexample import counterexample_row
from pellucid.synthetic.fitted import PAPERS, surrogate_row
from pellucid.synthetic.linear import linear_data, linear_truth
from pellucid.synthetic.measured import bag_of_words, measured_row, reading, turned
from pellucid.synthetic.recovered import distance_row, recovery_row
from pellucid.synthetic.repeated import length_row, repetition_row
from pellucid.synthetic.reviews import train_reviews
from pellucid.synthetic.sequences import Data
from pellucid.synthetic.slalom import slalom_data, slalom_truth
from pellucid.synthetic.train import planted, train

__all__ = [
    "PAPERS",
    "Data",
    "asking",
    "bag_of_words",
    "counterexample_row",
    "distance_row",
    "length_row",
    "linear_data",
    "linear_truth",
    "measured_row",
    "planted",
    "reading",
    "recovery_row",
    "repetition_row",
    "runtime_row",
    "slalom_data",
    "slalom_truth",
    "surrogate_row",
    "train",
    "train_reviews",
    "turned",
]

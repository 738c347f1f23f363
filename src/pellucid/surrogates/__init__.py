"""Simple functions of sequences that stand in for a model. Nothing here knows a model."""

from __future__ import annotations

from pellucid.surrogates.crossed import Crossed, crossed
from pellucid.surrogates.designs import Samples, samples
from pellucid.surrogates.errors import FitError, fit_error, recovery_error
from pellucid.surrogates.fitting import PRESETS, Settings
from pellucid.surrogates.gam import Gam
from pellucid.surrogates.linear import Linear
from pellucid.surrogates.naive_bayes import NaiveBayes
from pellucid.surrogates.repetition import Repetition, repetition
from pellucid.surrogates.report import Report
from pellucid.surrogates.slalom import Slalom
from pellucid.surrogates.uncertainty import refit_errors

__all__ = [
    "PRESETS",
    "Crossed",
    "FitError",
    "Gam",
    "Linear",
    "NaiveBayes",
    "Repetition",
    "Report",
    "Samples",
    "Settings",
    "Slalom",
    "crossed",
    "fit_error",
    "recovery_error",
    "refit_errors",
    "repetition",
    "samples",
]

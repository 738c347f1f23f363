"""Beside other libraries: their tools on pellucid's models, ours on their numbers.

Nothing here imports Captum or Quantus: what is theirs is handed in by the one who uses it.
"""

from __future__ import annotations

from pellucid._tabular import to_dataset
from pellucid.compat.attribute import Attributor, attribute
from pellucid.compat.captum import captum
from pellucid.compat.explanation import explanation
from pellucid.compat.logits import LogitsModule, encoded, logits_module
from pellucid.compat.quantus import quantus_call, quantus_explain_func

__all__ = [
    "Attributor",
    "LogitsModule",
    "attribute",
    "captum",
    "encoded",
    "explanation",
    "logits_module",
    "quantus_call",
    "quantus_explain_func",
    "to_dataset",
]

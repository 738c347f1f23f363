"""What class an explanation has: the one that reads what its extras hold.

A file stores the extras and no class, so nothing new has to be written or trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from torch import Tensor

from pellucid._results import Explanation
from pellucid._slalom import READ, SlalomExplanation

_VIEWS: tuple[tuple[frozenset[str], type[Explanation]], ...] = ((READ, SlalomExplanation),)


def view_of(extras: Mapping[str, Tensor]) -> type[Explanation]:
    """The class of an explanation with these extras."""
    return next((view for names, view in _VIEWS if names <= extras.keys()), Explanation)


def plain(explanation: Explanation) -> Explanation:
    """The same explanation without its extras, and of no particular class."""
    own = {field.name: getattr(explanation, field.name) for field in fields(Explanation)}
    return Explanation(**own | {"extras": {}})

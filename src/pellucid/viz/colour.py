"""From numbers to colours: opacity says how much, and the hue in which direction.

The three colours differ in more than red and green, and are of middling lightness, so that they
are seen on white and on black alike. Opacity grows in proportion to the score, from none at zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

FOR = (232, 115, 12)  # orange
AGAINST = (47, 127, 214)  # blue
AMOUNT = (192, 68, 158)  # magenta, of scores without a direction

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Scale:
    """The range of one explanation: symmetric about zero if signed, from zero up if not.

    Scores beyond `limit` have the full colour; `largest` is the size of the largest score.
    """

    limit: float
    largest: float
    signed: bool

    @classmethod
    def of(cls, scores: Any, signed: bool, quantile: float = 1.0) -> Scale:
        """The range of these scores, or of the given fraction of them, the smallest by size."""
        sizes = _sizes(scores, signed)
        if not sizes.size:
            return cls(0.0, 0.0, signed)
        largest = float(sizes.max())
        return cls(float(np.quantile(sizes, quantile)) or largest, largest, signed)

    def strength(self, scores: Any) -> Array:
        """Where the scores lie in the range: from -1 to 1 if signed, from 0 to 1 if not."""
        numbers = np.nan_to_num(np.asarray(scores, dtype=np.float64))
        if not self.limit:
            return np.zeros_like(numbers)
        relative: Array = np.clip(numbers / self.limit, -1.0 if self.signed else 0.0, 1.0)
        return relative

    def rgba(self, scores: Any) -> Array:
        """The colours of the scores with their opacity, as bytes (... 4)."""
        strength = self.strength(scores)
        colour = np.where(strength[..., None] < 0, AGAINST, FOR if self.signed else AMOUNT)
        opacity = np.abs(strength)[..., None] * 255
        return np.concatenate([colour, opacity.round()], axis=-1).astype(np.uint8)

    def ramp(self, steps: int = 255) -> Array:
        """The colours of the whole range in even steps, as fractions (steps 4)."""
        bounds = np.linspace(-self.limit if self.signed else 0.0, self.limit, steps)
        return self.rgba(bounds) / 255


def _sizes(scores: Any, signed: bool) -> Array:
    """The finite scores by size; without a direction nothing lies below zero."""
    numbers = np.asarray(scores, dtype=np.float64).ravel()
    numbers = numbers[np.isfinite(numbers)]
    sizes: Array = np.abs(numbers) if signed else numbers.clip(min=0.0)
    return sizes

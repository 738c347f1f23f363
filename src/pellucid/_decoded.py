"""What the points of a trajectory look like to a person, and what the model says of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

Candidate = tuple[str, float]  # a token and its score
Frames = np.ndarray[tuple[int, int, int, int], np.dtype[np.uint8]]


@dataclass(frozen=True, eq=False)
class Decoded:
    """The saved points of a walk as inputs (s of them), and the predictions of those inputs.

    A decoded input is another input than the point it was decoded from: pixels were clamped and
    rounded, or vectors became words. So both predictions are kept, and `agrees` says where the
    likeliest class is the same.
    """

    using: str  # how it was decoded
    iterations: Tensor  # s
    labels: tuple[str, ...]
    probabilities: Tensor  # s c: of the decoded inputs
    agrees: Tensor  # s, bool: the decoded input is predicted as its point is
    frames: Frames | None = None  # images: s h w c, as the model's preprocessing gives views
    texts: tuple[str, ...] = ()  # texts: the decoded text of every point
    token_ids: Tensor | None = None  # s t: all ids, those not walked unchanged
    candidates: tuple[tuple[tuple[Candidate, ...], ...], ...] = ()  # s m top
    changed: Tensor | None = None  # s m, bool: the token or patch differs from the start's
    quality: Mapping[str, Tensor] = field(default_factory=dict)  # s: how well it went
    notes: tuple[str, ...] = ()
    predicted: tuple[str, ...] = ()  # s: the likeliest class of every decoded input
    expected: tuple[str, ...] = ()  # s: the likeliest class of every point


@dataclass(frozen=True)
class Prompt:
    """One alternative input: the original with one walked token replaced by a candidate."""

    iteration: int
    position: int  # of the segment
    rank: int  # 0 is the best candidate
    token: str
    token_probability: float
    text: str
    probability: float  # of the class that was predicted at first
    predicted: str
    changed: bool  # the prediction is another one: in Y_c, else in Y_s

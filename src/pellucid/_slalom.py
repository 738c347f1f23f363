"""What a SLALOM says of one input beside its scores. Leemann et al., TMLR 2024, sections 5 and C.

Every number is read from the explanation's extras, so all of it is there after saving and loading.
Tokens that stay or go together (a word, the model's own tokens) share the weight of their unit:
each has its value and, of k, its importance less log k, so that all tokens make up one SLALOM.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid._arguments import position
from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._types import Text
from pellucid.surrogates import Slalom

_READINGS = ("values", "importance", "linear", "gradient", "contribution", "removal")
_TOLD = ("value_error", "importance_error", "identified")
_OF_ALL = ("fidelity", "empty")  # one number each
READ = frozenset((*_READINGS, *_TOLD, *_OF_ALL, "player", "permanent"))
_PERMANENT = "permanent"  # the unit that is a member of every sequence


@dataclass(frozen=True, eq=False, repr=False)
class SlalomExplanation(Explanation):
    """An explanation by a SLALOM: what each token says, and how much it is listened to.

    The explained number is an average of the tokens' `values`, weighted by the softmax of their
    `importance`. `scores` are `removal`; the model's own tokens cannot be removed and get zero.
    """

    def __post_init__(self) -> None:
        tokens = len(self.item.segments)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(
            (*_READINGS, *_TOLD, "player"), (tokens,)
        )
        shapes |= dict.fromkeys(_OF_ALL, ())
        wrong = [n for n, shape in shapes.items() if tuple(self.extras[n].shape) != shape]
        wrong += [n for n in (*_READINGS, *_OF_ALL) if not self.extras[n].isfinite().all()]
        if wrong or tuple(self.extras["permanent"].shape) not in ((0,), (2,)):
            raise ArgumentError(
                explain_error(
                    "these are not the readings of a SLALOM",
                    got=f"extras of wrong shapes or not finite: {', '.join(wrong) or 'permanent'}",
                    expected=f"one finite number for each of {tokens} tokens",
                    instead="pellucid.explain(model, text, method='slalom')",
                )
            )

    # ---- one number a token ------------------------------------------------------------------

    @property
    def values(self) -> Tensor:
        """What the explained number would be, if it were for each token alone (v, t)."""
        return self.extras["values"]

    @property
    def importance(self) -> Tensor:
        """How much each token counts in the average, as a logarithm; a unit's mean is 0 (s, t)."""
        return self.extras["importance"]

    @property
    def linear(self) -> Tensor:
        """e^s v (equation 65), which only ranks: its scale depends on the zero of s (t)."""
        return self.extras["linear"]

    @property
    def contribution(self) -> Tensor:
        """The share of each token times its value; all of them sum to the prediction (t)."""
        return self.extras["contribution"]

    @property
    def gradient(self) -> Tensor:
        """The slope of the prediction as a token fades (equation 64); sums to zero (t)."""
        return self.extras["gradient"]

    @property
    def removal(self) -> Tensor:
        """The prediction less what it is without each unit, shared by its tokens (t)."""
        return self.extras["removal"]

    @property
    def standard_error(self) -> Mapping[str, Tensor]:
        """Standard errors of "values" and "importance" (t), from refits without a tenth each."""
        return {"values": self.extras["value_error"], "importance": self.extras["importance_error"]}

    @property
    def identified(self) -> Tensor:
        """Where the samples tell the importance, and not only what a removal does (t)."""
        return self.extras["identified"]

    # ---- the surrogate -----------------------------------------------------------------------

    @property
    def fidelity(self) -> float:
        """The share of variance that the surrogate explains on samples left out of the fit."""
        return float(self.extras["fidelity"])

    @property
    def players(self) -> tuple[tuple[int, ...], ...]:
        """The tokens that go together, by their positions."""
        owner: list[int] = self.extras["player"].tolist()
        many = max(owner, default=-1) + 1
        return tuple(tuple(i for i, own in enumerate(owner) if own == p) for p in range(many))

    @property
    def surrogate(self) -> Slalom:
        """The SLALOM of this input, whose units are the numbers of `players`."""
        players, permanent = self.players, self.extras["permanent"].double()
        importance, values = self.importance.double(), self.values.double()
        weight = [importance[list(player)].logsumexp(dim=0) for player in players]
        own = torch.tensor([player[0] for player in players], dtype=torch.long)
        return Slalom(
            (*range(len(players)), *([_PERMANENT] if len(permanent) else [])),
            torch.cat([values[own], permanent[:1]]),
            torch.cat([torch.stack(weight) if weight else importance[:0], permanent[1:]]),
            special=(_PERMANENT,) if len(permanent) else (),
            empty=self.extras["empty"].double(),
        )

    def predict(self, removed: Iterable[int | str] = ()) -> float:
        """The explained number without these tokens, as the surrogate predicts it.

        A token is given by its position, or by the word that it belongs to: then wherever that
        word occurs. `predict()` is the prediction for the whole input.
        """
        gone = {position for one in removed for position in self._positions(one)}
        stays = []
        for number, player in enumerate(self.players):
            touched = gone.intersection(player)
            if touched and len(touched) < len(player):
                raise self._divided(touched, player)
            if not touched:
                stays.append(number)
        return float(self.surrogate.predict([stays])[0])

    def shapley(self) -> Tensor:
        """The Shapley value of each unit in the surrogate, shared by its tokens (t)."""
        players = self.players
        of_players, _ = self.surrogate.shapley(range(len(players)))
        found = torch.zeros(len(self.segments), dtype=torch.float64)
        for player, share in zip(players, of_players, strict=True):
            found[list(player)] = share / len(player)
        return found

    # ---- inside ------------------------------------------------------------------------------

    def _positions(self, one: int | str) -> list[int]:
        """The tokens that a position or a word stands for."""
        if not isinstance(one, str):
            place = position("removed", one, len(self.segments), "token")
            if self.segments[place].role != "content":
                raise self._unknown(one)
            return [place]
        words = self.words() if isinstance(self.item, Text) else []
        spans = [(word.part, word.span) for word in words if word.text == one]
        found = [
            i
            for i, segment in enumerate(self.segments)
            if segment.role == "content"
            and (
                segment.text == one
                or any(
                    segment.part == part and segment.span and a <= segment.span[0] < b
                    for part, (a, b) in spans
                )
            )
        ]
        if not found:
            raise self._unknown(one)
        return found

    def _unknown(self, one: int | str) -> ArgumentError:
        example = next((s.text for s in self.segments if s.role == "content"), "")
        return ArgumentError(
            explain_error(
                "nothing in the input can be removed by this name",
                got=f"removed=[{one!r}]",
                expected="words of the text, or positions of tokens that are not the model's own",
                instead=f"predict(removed=[{example!r}])",
            )
        )

    def _divided(self, touched: set[int], player: tuple[int, ...]) -> ArgumentError:
        return ArgumentError(
            explain_error(
                "these tokens were only taken away together",
                got=f"removed={sorted(touched)}",
                expected=f"all of {list(player)}, or unit='position' in the explanation",
                instead=f"predict(removed={list(player)})",
            )
        )

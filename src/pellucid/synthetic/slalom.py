"""Words whose values are averaged by a softmax. Leemann et al., TMLR 2024, section E.1.2."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid._arguments import integer, real
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid.surrogates import Slalom
from pellucid.synthetic.sequences import Data, check_words, cut, labelled

LONGEST = {"paper": 30, "released": 8}  # words; the authors' notebook on recovery has 8
WORDS = 200


def slalom_truth(scores: Mapping[str, float] | None = None, *, seed: int = 0) -> Slalom:
    """v = 2 x the bag-of-words score of each word, s = 5 |v|^(3/2) + e / 2 with e ~ N(0, 1).

    Main arguments: `scores` are those of words, as `pellucid.surrogates.NaiveBayes` counts them;
    without any, 200 words have scores of a heavy-tailed distribution of about their spread.

    Equation 81 has v^(3/2), which negative values do not have; the sizes are meant, as the authors'
    table of parameters shows. Importances are centred.
    """
    generator = torch.Generator().manual_seed(integer("seed", seed, 0))
    known = _drawn_scores(generator) if scores is None else _checked(scores)
    value = 2 * torch.tensor(list(known.values()), dtype=torch.float64)
    noise = torch.randn(len(value), generator=generator, dtype=torch.float64)
    importance = 5 * value.abs() ** 1.5 + noise / 2
    return Slalom(tuple(known), value, importance - importance.mean())


def slalom_data(
    n: int,
    vocabulary: int = WORDS,
    seed: int = 0,
    *,
    truth: Slalom | None = None,
    preset: str = "paper",
) -> Data:
    """`n` sequences with F(t) = sum of a_i v(t_i), a softmax of importances (equation 4).

    Words are the first so many of the truth's (None: `slalom_truth()`), each as likely; their
    values and importances stay what they are among all. Every length from 1 to 30 is as likely, or
    up to 8 with the preset "released".
    """
    whole = slalom_truth() if truth is None else truth
    check_words(tuple(map(str, whole.units)))
    if integer("vocabulary", vocabulary, 1, 64) > len(whole.units):
        raise ArgumentError(
            explain_error(
                "the truth has fewer words than the vocabulary",
                got=f"vocabulary={vocabulary} of {len(whole.units)} words",
                expected=f"at most {len(whole.units)}",
                instead=f"vocabulary={len(whole.units)}",
            )
        )
    if preset not in LONGEST:
        raise ArgumentError(unknown_name("preset", preset, LONGEST, write="preset={!r}"))
    integer("n", n, 1, 5000)
    generator = torch.Generator().manual_seed(integer("seed", seed, 0))
    longest = LONGEST[preset]
    ids = torch.randint(vocabulary, (n, longest), generator=generator)
    lengths = torch.randint(1, longest + 1, (n,), generator=generator)
    return labelled(cut(ids, lengths), _first(whole, vocabulary), generator)


def _first(truth: Slalom, many: int) -> Slalom:
    return Slalom(truth.units[:many], truth.value[:many], truth.importance[:many])


def _drawn_scores(generator: torch.Generator) -> dict[str, float]:
    """Scores of 200 words: a quarter of Student's t with 4 degrees of freedom, within 1."""

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    drawn = normal(WORDS) / normal(4, WORDS).square().mean(dim=0).sqrt()
    scores = (drawn / 4).clamp(-1, 1).tolist()
    return {f"w{i}": score for i, score in enumerate(scores)}


def _checked(scores: Mapping[str, float]) -> dict[str, float]:
    if not scores:
        raise ArgumentError(
            explain_error(
                "there is no word to give a value to",
                got="scores={}",
                expected="a score for each of some words, or None",
                instead="scores=dict(zip(nb.units, nb.weight.tolist()))",
            )
        )
    return {word: real(f"scores[{word!r}]", score) for word, score in scores.items()}

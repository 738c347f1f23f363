"""Explanations of real texts by one metric, as a row of the tables on them.

Leemann et al., TMLR 2024, Tables 1, 9 to 11 and 14, Figure 6. Which metric a table has:
`removal_fidelity` (Figure 6), `naive_bayes_correlation` with the weights of `bag_of_words` (1a, 9),
`attention_auroc` (1b, 10), `text_insertion` (1c, 11b) and `text_deletion` (11a, c, 14).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from statistics import fmean
from typing import Any

from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid._measure import measure
from pellucid._results import Explanation
from pellucid._target import Target
from pellucid.adapters import as_adapter
from pellucid.surrogates import NaiveBayes
from pellucid.synthetic.repeated import Row
from pellucid.synthetic.spread import standard_error


def measured_row(
    model: Any, explanations: Sequence[Explanation], metric: str, **options: Any
) -> Row:
    """Mean and standard error of a metric, how many texts it is of, and the mean curve, if any.

    `options` are those of `pellucid.measure`. A curve is averaged over the texts that reach so far.
    """
    found = measure(model, list(explanations), metric=metric, **options)
    used = [one for one in found if one.value is not None]
    values = [one.value for one in used]
    row: Row = {"n": len(used), "skipped": len(found) - len(used)}
    if not used:
        return row
    for level in range(1, max(len(one.curve) for one in used) + 1):
        reached = [one.curve[level - 1] for one in used if len(one.curve) >= level]
        row[f"curve_{level}"] = fmean(reached)
    return row | {"mean": fmean(values), "se": standard_error(values)}


def reading(explanation: Explanation, name: str) -> Explanation:
    """The explanation whose scores are one of its extras: "values" or "importance" of a SLALOM.

    Importances have no sign, so they are compared with the size of what has one.
    """
    tokens = {
        key for key, one in explanation.extras.items() if one.shape == explanation.scores.shape
    }
    if name not in tokens:
        raise ArgumentError(unknown_name("reading", name, tokens, write="name={!r}"))
    return _plain(explanation, scores=explanation.extras[name], signed=name != "importance")


def turned(explanation: Explanation) -> Explanation:
    """The explanation of the log-odds of the other of two classes: every sign is the other.

    Removals are read for one class, by the scores that speak for it; a text of the class 0 has its
    own from the scores for 1.
    """
    goal = explanation.target
    if goal is None or goal.quantity != "log_odds" or len(explanation.logits) != 2:
        raise ArgumentError(
            explain_error(
                "only the log-odds of two classes turn with their sign",
                got=f"an explanation of the {explanation.explains}",
                expected="log-odds of one of two classes",
                instead="target=pellucid.Target.log_odds('positive') in pellucid.explain",
            )
        )
    other = next(name for name in explanation.prediction if name != explanation.label)
    target = Target.log_odds(other)
    return _plain(
        explanation,
        scores=-explanation.scores,
        value=-explanation.value,
        target=target,
        explains=target.describe("class"),
        label=other,
        index=1 - (explanation.index or 0),
    )


def bag_of_words(
    model: Any, texts: Sequence[str], labels: Sequence[int], *, alpha: float = 40.0
) -> dict[str, float]:
    """log((n1 + alpha) / (n0 + alpha)) of every token, n counting it in the texts of each class.

    Tokens are the model's, by the characters that they stand on, as in an explanation: texts in
    lower case give one weight to a word wherever it stands.
    """
    adapter = as_adapter(model)
    read = [adapter.read(text, Target(), long="truncate") for text in texts]
    words = [[one.text for one in item.segments if one.role == "content"] for item in read]
    signs = [2.0 * label - 1 for label in labels]
    found = NaiveBayes.fit(words, signs, alpha=alpha)
    return dict(zip(map(str, found.units), found.weight.tolist(), strict=True))


def _plain(explanation: Explanation, **changes: Any) -> Explanation:
    """A copy of no particular class, without extras."""
    own = {field.name: getattr(explanation, field.name) for field in fields(Explanation)}
    return Explanation(**own | {"extras": {}} | changes)

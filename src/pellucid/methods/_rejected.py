"""What a map of a class that the model does not predict means. TIS, section 5.1.2."""

from __future__ import annotations

from pellucid._case import Case


def rejected_notes(case: Case) -> list[tuple[str, ...]]:
    """A sentence for every input whose probability is explained for a class that is not predicted.

    Where the model is sure of another class, what keeps the asked one possible is the background.
    """
    classes = case.objective.classes
    if classes is None or case.target.quantity != "probability" or case.target.text is not None:
        return [() for _ in case.batch.items]
    name = case.adapter.label_name
    found: list[tuple[str, ...]] = []
    for asked, row in zip(classes[:, 0].tolist(), case.rows[:, 0], strict=True):
        predicted = int(row.argmax())
        sentence = (
            f"the model predicts {name(predicted)!r}, not {name(asked)!r}: a map of a rejected "
            f"class may show the background; target=Target.logit({name(asked)!r}) forces the rest"
        )
        found.append((sentence,) if predicted != asked else ())
    return found

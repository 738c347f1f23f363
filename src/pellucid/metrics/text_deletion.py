"""Deletion for texts, as SLALOM's paper measures it (section 5.3, Table 14): AOPC of 1 - p.

Keep the lowest-scored tokens, 5 of them, then 10, and so on, and average what the class has lost.
So it is the other way up than deletion for images: higher is better here.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid._case import Case
from pellucid._errors import ArgumentError, explain_error
from pellucid._needs import Needs
from pellucid._perturb import evaluate_versions
from pellucid._results import Explanation
from pellucid._spec import metric
from pellucid._types import Batch, Measured
from pellucid.metrics._ranking import Ties, ranks, tie_fraction


@metric(
    needs=Needs.TOKENS | Needs.TOKEN_DROP,
    cite="leemann2024attention",
    better="higher",
    family="faithfulness",
    kinds=("text",),
)
def text_deletion(
    case: Case,
    explanations: Sequence[Explanation],
    *,
    step: int = 5,
    ties: Ties = "stable",
) -> Measured:
    """1 - mean probability of the class with only the 5, 10, ... lowest-scored tokens left."""
    if step < 1:
        raise ArgumentError(
            explain_error(
                "tokens are kept in steps",
                got=f"step={step}",
                expected="at least 1",
                instead="step=5",
            )
        )
    content = case.content.cpu()
    keeps: list[Tensor] = []  # one mask a version, over the tokens of the batch
    rows: list[int] = []
    tied: list[float] = []
    for row, (explanation, real) in enumerate(zip(explanations, content, strict=True)):
        own = [s.role == "content" for s in explanation.segments]
        scores = explanation.scores[torch.tensor(own)]
        rank = ranks(scores, ties, case.generators[row])
        tied.append(tie_fraction(scores))
        for count in range(step, len(scores) + 1, step):
            keep = case.mask[row].cpu() & ~real
            keep[real] = rank >= len(scores) - count  # the lowest-scored stay
            keeps.append(keep)
            rows.append(row)
    found = _probabilities(case, keeps, torch.tensor(rows))
    curves = [found[torch.tensor(rows) == row] for row in range(len(explanations))]
    return Measured(
        values=[1 - float(curve.mean()) if len(curve) else None for curve in curves],
        curves=curves,
        ties=tied,
        skipped=["" if len(curve) else f"fewer than {step} tokens" for curve in curves],
    )


def _probabilities(case: Case, keeps: list[Tensor], rows: Tensor) -> Tensor:
    """p(class) with only the kept tokens, for every version."""
    if not keeps:
        return torch.empty(0)
    masks = torch.stack(keeps).to(case.mask.device)

    def make(jobs: Tensor) -> Batch:
        return case.adapter.keep(case.batch.take(rows[jobs]), masks[jobs.to(masks.device)])

    lengths = masks.sum(dim=1).cpu()
    return evaluate_versions(case, rows, make, lengths=lengths)

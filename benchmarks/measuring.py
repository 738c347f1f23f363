"""What a metric costs beyond the forward passes that it cannot do without."""

from __future__ import annotations

import torch
from _claims import Claim, timed

import pellucid
from pellucid import Target
from pellucid.models import sample_images


def claims() -> list[Claim]:
    model = pellucid.load("pellucid/digits-vit")
    images = sample_images()
    explained = pellucid.explain(model, images, method="rollout")
    batch = model.encode(images * 4, Target.predicted())  # 32 images, as a batch of the metric
    evaluations = sum(
        m.evaluations for m in pellucid.measure(model, explained, metric="deletion", steps=196)
    )

    def raw() -> None:
        with torch.no_grad():
            for _ in range(-(-evaluations // len(batch))):
                model.output(batch)

    return [
        timed(
            f"deletion of 8 digits, {evaluations} evaluations",
            lambda: pellucid.measure(model, explained, metric="deletion", steps=196),
            "the same number of forwards, raw, 32 at a time",
            raw,
            goal=1 / 0.9,
            repeats=9,
        )
    ]

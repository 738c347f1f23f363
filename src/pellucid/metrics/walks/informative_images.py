"""How many pictures worth looking at a walk makes. SiMEC, section 4, on exploring the input space.

A picture of one colour says nothing. Its variance is over all of its pixels on the scale from -1
to 1, as in the authors' code, where the least one is 0.01; pictures of noise pass.

It misleads where varied is taken for meaningful: noise varies most.
"""

from __future__ import annotations

import torch

from pellucid._arguments import real
from pellucid._spec import walk_metric
from pellucid.metrics.walks._evidence import Evidence, Skip, WalkMeasured

_LEAST = 0.01


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher", kinds=("image",))
def informative_share(evidence: Evidence, *, least: float = _LEAST) -> WalkMeasured:
    """Share of the pictures of the original's class whose pixels vary enough, of all that are."""
    _, same_class, informative = _counted(evidence, least)
    if not same_class:
        raise Skip("no picture is of the original's class")
    return WalkMeasured(informative / same_class, more={"pictures": same_class})


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher", kinds=("image",))
def pictures_per_second(evidence: Evidence) -> WalkMeasured:
    """Pictures that a walk makes in a second, whatever they show; the start is none of them."""
    pictures, _, _ = _counted(evidence, _LEAST)
    return _per_second(evidence, pictures)


@walk_metric(cite="benfenati2024unveiling", stay="higher", leave="higher", kinds=("image",))
def informative_per_second(evidence: Evidence, *, least: float = _LEAST) -> WalkMeasured:
    """Pictures of the original's class whose pixels vary enough, that a walk makes in a second."""
    _, _, informative = _counted(evidence, least)
    return _per_second(evidence, informative)


def _counted(evidence: Evidence, least: float) -> tuple[int, int, int]:
    """All pictures but the start; those of its class; those of them that vary enough."""
    if evidence.walk.kind != "image":
        raise Skip("only pictures have a variance of pixels")
    decoded = evidence.decoded
    assert decoded.frames is not None
    if len(decoded.frames) < 2:
        raise Skip("one recorded point")
    scaled = torch.tensor(decoded.frames[1:]).double() / 127.5 - 1  # s h w c
    variance = scaled.flatten(1).var(dim=1, correction=0)
    first = evidence.walk.predicted[0]
    same = torch.tensor([name == first for name in decoded.predicted[1:]])
    informative = same & (variance >= real("least", least, _LEAST))
    return len(same), int(same.sum()), int(informative.sum())


def _per_second(evidence: Evidence, count: int) -> WalkMeasured:
    seconds = evidence.walk.provenance.seconds
    if not seconds > 0:
        raise Skip("the time of the walk is not known")
    return WalkMeasured(count / seconds, more={"pictures": count, "seconds": seconds})

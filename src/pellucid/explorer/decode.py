"""`decode`: what the saved points of a walk look like as inputs, and what the model says of those.

Algorithm 5 of the SiMEC paper, with what is lost on the way measured: a decoded input is another
input than its point, so it is given to the model again and both predictions are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._decoded import Decoded
from pellucid._errors import ArgumentError, explain_error, unknown_name
from pellucid._trajectory import Trajectory
from pellucid._types import Picture
from pellucid.adapters.text_model import TextModel
from pellucid.explorer.decoders import Decoder, Nearest, Reading
from pellucid.explorer.frames import develop
from pellucid.explorer.paired import paired
from pellucid.explorer.predictions import Predictions, predict
from pellucid.explorer.space import Stream
from pellucid.explorer.spelling import Spelling, growth, spell, with_ids, written
from pellucid.explorer.walked import Walked
from pellucid.record import precision

TEXT = ("nearest", "mlm", "head")
_IMAGE = {"embedding": "inverse", "pixels": "pixels"}


@torch.inference_mode(False)
def decode(
    trajectory: Trajectory,
    model: Any,
    *,
    using: str | None = None,
    mlm: Any = None,
    top: int = 5,
    fallback_original: bool = True,
    punctuation: bool = True,
    batch_size: int = 64,
) -> Decoded:
    """The saved points as inputs of the model that was walked in.

    Main arguments: `using` is "inverse" or "pixels" for images (by the space of the walk) and
    "nearest", "mlm" or "head" for texts (None: "mlm" for a masked language model or where `mlm` is
    given, else "nearest"); `mlm` is the masked language model that shares the walked one's shape
    and tokens; `top` candidates are kept a token.

    Other arguments: `fallback_original` keeps a token that is misread at the start for as long as
    it is misread as the same; `punctuation=False` leaves marks out of the candidates; `batch_size`
    decoded inputs are given to the model at once.
    """
    top, batch_size = integer("top", top, 1, 5), integer("batch_size", batch_size, 1, 64)
    walked = Walked.of(trajectory, model)
    with precision.formulas(walked.adapter.device):
        if trajectory.kind == "image":
            return _pictures(walked, _way(walked, using, mlm), batch_size)
        using, decoder = find_decoder(walked, using, mlm)
        spelled = spell(walked, decoder, top, fallback=fallback_original, punctuation=punctuation)
        return _texts(spelled, using, fallback_original, batch_size)


def find_decoder(walked: Walked, using: str | None, mlm: Any) -> tuple[str, Decoder]:
    """The way from states to tokens by its name, or the default one."""
    adapter, space = walked.adapter, walked.space
    assert isinstance(adapter, TextModel)
    assert isinstance(space, Stream)
    if using is None:
        using = "mlm" if mlm is not None or adapter.task == "masked" else "nearest"
    if using not in TEXT:
        raise ArgumentError(unknown_name("way of decoding", using, TEXT, write="using={!r}"))
    if using == "nearest":
        if mlm is not None:
            raise _needless(using)
        return using, Nearest(adapter, space, walked.batch)
    reader = adapter if mlm is None else paired(mlm, adapter)
    itself = {"mlm": ("masked",), "head": ("masked", "causal")}[using]
    if mlm is None and adapter.task not in itself:
        raise ArgumentError(
            explain_error(
                "this model does not say itself which token a state is",
                got=f"using={using!r} for {adapter.name}, a model for {adapter.task}",
                expected="the masked language model that it was trained from, as mlm=",
                instead="trajectory.decode(mlm=pellucid.load(...)), or using='nearest'",
            )
        )
    at = space.at if using == "mlm" else f"hidden:{len(reader.anatomy.blocks)}"
    reading = Reading.of(reader, at, walked.batch)
    width = reader.value_at(reading.batch, at).shape[2]
    if width != walked.start.shape[2]:
        raise ArgumentError(
            explain_error(
                "the language model reads states of another width there",
                got=f"using={using!r} for states of width {walked.start.shape[2]}",
                expected=f"states of width {width}",
                instead="using='nearest'",
            )
        )
    return using, reading


def _way(walked: Walked, using: str | None, mlm: Any) -> str:
    """The only way from this space to pixels, under its name."""
    found = _IMAGE[walked.space.name]
    if using not in (None, found):
        raise ArgumentError(unknown_name("way of decoding", using, [found], write="using={!r}"))
    if mlm is not None:
        raise _needless(found)
    return found


def _needless(using: str) -> ArgumentError:
    return ArgumentError(
        explain_error(
            "no language model is asked in this way of decoding",
            got=f"mlm= with using={using!r}",
            expected="mlm= with using='mlm' or 'head', for texts",
            instead=f"using={using!r} without mlm=",
        )
    )


def _pictures(walked: Walked, using: str, batch_size: int) -> Decoded:
    item = walked.item
    assert isinstance(item, Picture)
    found = develop(walked)
    items = [replace(item, view=frame) for frame in found.frames]
    told = predict(walked.adapter, items, walked.target, walked.trajectory.classes, batch_size)
    return _told(
        walked,
        told,
        using=using,
        quality=found.quality,
        notes=_outside(found.quality["clipped"]),
        frames=found.frames,
        changed=found.changed,
    )


def _texts(spelled: Spelling, using: str, fallback: bool, batch_size: int) -> Decoded:
    walked, rows = spelled.walked, spelled.rows
    unique = {ids: i for i, ids in enumerate(dict.fromkeys(rows))}
    items = [with_ids(walked, ids) for ids in unique]
    told = predict(
        walked.adapter, items, walked.target, walked.trajectory.classes, batch_size
    ).take(torch.tensor([unique[ids] for ids in rows]))
    quality = {
        spelled.decoder.quality: spelled.ranked.scores[:, :, 0].mean(dim=1),
        "retokenised": growth(walked, rows),
    }
    return _told(
        walked,
        told,
        using=using,
        quality=quality,
        notes=_remarks(spelled, using, fallback, quality["retokenised"]),
        texts=tuple(written(walked, ids) for ids in rows),
        token_ids=torch.tensor(rows),
        candidates=spelled.candidates(),
        changed=spelled.changed(),
    )


def _told(
    walked: Walked,
    told: Predictions,
    *,
    quality: Mapping[str, Tensor],
    notes: tuple[str, ...] = (),
    **fields: Any,
) -> Decoded:
    """The decoded inputs beside what the model says of them and of their points."""
    trajectory, adapter = walked.trajectory, walked.adapter
    predicted = tuple(adapter.label_name(i) for i in told.likeliest.tolist())
    agrees = torch.tensor([p == q for p, q in zip(predicted, trajectory.predicted, strict=True)])
    if len(trajectory.classes) == len(adapter.labels):  # names may be given twice, numbers not
        likeliest = torch.tensor(trajectory.classes)[trajectory.probabilities.argmax(dim=1)]
        agrees = told.likeliest == likeliest
    gap = (told.probabilities - trajectory.probabilities).abs().amax(dim=1)
    return Decoded(
        iterations=trajectory.iterations,
        labels=trajectory.labels,
        probabilities=told.probabilities,
        agrees=agrees,
        quality={"difference": gap, **quality},
        notes=(*walked.notes, *notes),
        predicted=predicted,
        expected=trajectory.predicted,
        **fields,
    )


def _outside(clipped: Tensor) -> tuple[str, ...]:
    """How much of the pictures is not what the points say."""
    if not clipped.any():
        return ()
    return (
        f"up to {float(clipped.max()):.0%} of the walked pixels were beyond black or white, and "
        "were clipped; space='pixels' walks between them",
    )


def _remarks(spelled: Spelling, using: str, fallback: bool, grown: Tensor) -> tuple[str, ...]:
    """What a reader of the texts should know: misread tokens, and other cuts into tokens."""
    notes: list[str] = []
    places = len(spelled.original)
    if spelled.right < places or using != "nearest":
        note = f"using={using!r} reads {spelled.right} of {places} tokens right at the start"
        if fallback and spelled.right < places:
            note += "; the others keep their token while they are misread as the same"
        notes.append(note)
    cut = int((grown != 0).sum())
    if cut:
        notes.append(
            f"{cut} of {len(grown)} texts are cut into another number of tokens when they are read "
            "again; the predictions are of the tokens themselves"
        )
    return tuple(notes)

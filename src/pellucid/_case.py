"""All that a method may touch: one batch, one model, one target, one source of randomness."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from pellucid._answers import Answers
from pellucid._batches import Progress
from pellucid._errors import (
    ArgumentError,
    UnsupportedCombination,
    explain_error,
)
from pellucid._kept import score_kept
from pellucid._meter import Meter
from pellucid._needs import MEANING, Needs
from pellucid._spec import Method, Metric
from pellucid._target import Objective, Target, check_finite
from pellucid._types import Attribution, Batch, Picture, Removal, Text
from pellucid.adapters.anatomy import read_tokens
from pellucid.adapters.base import Adapter, Images
from pellucid.adapters.randomised import randomised
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.geometry.jacobian import Jacobian
from pellucid.record.attention import AttentionWatch
from pellucid.record.head import HeadWatch
from pellucid.record.places import recorded
from pellucid.record.trace import Trace
from pellucid.relevance.rules import Rules


class Case:
    """What is explained. Tensors have one row an input; scores on padding are set to zero later.

    The unchanged input goes through the model once, whoever asks first; the predicted class is
    decided on that pass and stays the same for everything that follows.
    """

    def __init__(
        self,
        adapter: Adapter,
        batch: Batch,
        target: Target,
        *,
        seed: int = 0,
        batch_size: int = 8,
        spec: Method | Metric | None = None,
        meter: Meter | None = None,
        progress: Progress = False,
        again: Callable[..., list[Tensor]] | None = None,
        classes: Sequence[int] | None = None,
        answers: Answers | None = None,
    ) -> None:
        self.adapter = adapter
        self.batch = batch
        self.target = target
        self.seed = seed
        self.batch_size = min(batch_size, adapter.largest_batch or batch_size)
        self.meter = meter or Meter(len(batch))
        self.progress = progress
        self.answers = answers or Answers()
        self._again = again
        self._decided = None if classes is None else self._objective_of(classes)
        self.used = Needs.NOTHING
        self._spec = spec
        self._purpose = "" if spec is None else f"{spec.role} {spec.name}"
        self._clean: tuple[Tensor, Objective, Tensor] | None = None  # rows, objective, value
        self._states: dict[str, Tensor] = {}  # of the unchanged input, by place

    # ---- the unchanged input -----------------------------------------------------------------

    @property
    def kind(self) -> str:
        """What the model reads: "text" or "image"."""
        return self.adapter.kind

    @property
    def dtype(self) -> torch.dtype:
        """What scores are computed in: the model's own type, or float32 where that has less."""
        return torch.promote_types(self.adapter.dtype, torch.float32)

    @property
    def layers(self) -> int:
        """How many blocks the model has."""
        return len(self._opened(Needs.STREAM).anatomy.blocks)

    @property
    def most_at_once(self) -> int | None:
        """How many inputs may go through at once however short they are; None: as fit."""
        is_module = isinstance(self.adapter, TorchAdapter)
        return self.adapter.largest_batch if is_module else self.batch_size

    @property
    def mask(self) -> Tensor:
        """True where a token is real (b t)."""
        return self.batch.mask

    @property
    def content(self) -> Tensor:
        """True where a token belongs to what the user gave (b t)."""
        return self.batch.content

    @property
    def rows(self) -> Tensor:
        """The logits that the prediction is made of (b k c)."""
        return self._known()[0]

    @property
    def objective(self) -> Objective:
        """The target, bound to this batch."""
        return self._decided or self._known()[1]

    @property
    def value(self) -> Tensor:
        """The explained number of each unchanged input (b)."""
        return self._known()[2]

    def _known(self) -> tuple[Tensor, Objective, Tensor]:
        if self._clean is None:
            self.meter.forward()
            with torch.no_grad():
                self._learn(self.adapter.output(self.batch))
        assert self._clean is not None
        return self._clean

    def _learn(self, output: Any) -> Tensor:
        """The explained number of the unchanged input; its first pass binds the target."""
        if self._clean is not None:
            return self._number(self._clean[1], output, self.batch)
        objective = self._decided or self.adapter.objective(self.target, self.batch, output)
        value = self._number(objective, output, self.batch)
        rows = (
            value[:, None, None] if self.target.function else self.adapter.rows(output, self.batch)
        )
        check_finite(rows, self.adapter.name)
        check_finite(value, self.adapter.name)
        self._clean = (rows.detach(), objective, value.detach())
        return value

    def _objective_of(self, classes: Sequence[int]) -> Objective:
        """The target where the class of each input is decided already, before any pass."""
        chosen = torch.tensor(classes, device=self.mask.device)[:, None]  # b 1
        return Objective(self.target, chosen, independent=self.adapter.task == "multilabel")

    def _number(self, objective: Objective, output: Any, batch: Batch) -> Tensor:
        if self.target.function is not None:
            return objective.of_output(output, len(batch))
        return objective.of_rows(self.adapter.rows(output, batch))

    # ---- gradients ---------------------------------------------------------------------------

    def input(self, at: str = "input") -> Tensor:
        """The state that can be varied: pixels (b c h w), word embeddings or a stream (b t d)."""
        self._use(_needs_of(at))
        return self._state(at)

    def _state(self, at: str) -> Tensor:
        if at not in self._states:
            if at != "input":
                self.meter.forward()
            self._states[at] = cast(TorchAdapter, self.adapter).value_at(self.batch, at)
        return self._states[at]

    def score_from(self, x: Tensor, at: str = "input", rows: Tensor | None = None) -> Tensor:
        """The explained number when the state at a place is `x`, with its graph (b).

        With `rows`, `x` has one state for each row named; rows may be named several times.
        """
        adapter = self._opened(_needs_of(at))
        objective, batch = self.objective, self.batch
        if rows is not None:
            objective, batch = objective.take(rows), batch.take(rows)
        self.meter.forward(rows)
        return self._number(objective, adapter.output_from(batch, at, x), batch)

    def gradient(
        self,
        x: Tensor,
        at: str = "input",
        rows: Tensor | None = None,
        rules: Rules | None = None,
    ) -> Tensor:
        """The gradient of each explained number with respect to the state `x` it is made of.

        With `rows`, `x` has one state for each row named. With `rules` of relevance, it is what
        they send back to the state in its place.
        """
        adapter = self._opened(_needs_of(at) | _rules_in(rules))
        if rows is not None or x is not self._states.get(at):
            self._known()  # the target is bound to the unchanged input
        batch = self.batch if rows is None else self.batch.take(rows)
        self.meter.forward(rows)
        with torch.enable_grad():
            leaf = x.detach().requires_grad_()
            with adapter.following(rules):
                output = adapter.output_from(batch, at, leaf)
            if rows is None:
                score = self._learn(output)
            else:
                score = self._number(self.objective.take(rows), output, batch)
            if not score.requires_grad:
                raise ArgumentError(
                    explain_error(
                        "the target cannot be differentiated",
                        got=f"target: {self.target.describe()}, without a gradient",
                        expected="a differentiable function of the output",
                        instead="target=lambda output: output.logits[:, 1]",
                    )
                )
            self.meter.backwards += rows is None
            (found,) = torch.autograd.grad(score.sum(), leaf)
        return found

    def jacobian(
        self,
        x: Tensor | None = None,
        at: str = "embedding",
        of: Callable[[Tensor], Tensor] | None = None,
    ) -> Jacobian:
        """The Jacobian of the logits (b k*c), or of a function of them, by the state at a place."""
        adapter = self._opened(_needs_of(at))
        point = self.input(at) if x is None else x
        positions = adapter.read_positions(self.batch)

        def logits(state: Tensor) -> Tensor:
            with AttentionWatch(), adapter.only_read(positions, self.mask.shape[1]):
                output = adapter.output_from(self.batch, at, state)
            found = adapter.rows(output, self.batch).flatten(1)
            return found if of is None else of(found)

        return Jacobian(logits, point, self._count)

    def jacobian_of_read_states(self, at: str = "embedding") -> Jacobian:
        """The Jacobian of the last states that the prediction is read from (b d), by a place."""
        adapter = self._opened(_needs_of(at) | Needs.STREAM)
        if adapter.anatomy.readout is None:
            raise UnsupportedCombination(
                f"no state is known that {adapter.name} reads its prediction from.\n"
                f"  missing:  {adapter.missing(Needs.READOUT)}\n"
                "  instead:  another output than 'hidden'"
            )
        weights = adapter.anatomy.readout.weights(self.batch, self.mask)

        def read(state: Tensor) -> Tensor:
            with recorded({"last": adapter.anatomy.last}) as seen, AttentionWatch():
                adapter.output_from(self.batch, at, state)
            return torch.einsum("bt,btd->bd", weights.to(seen["last"]), seen["last"])

        return Jacobian(read, self.input(at), self._count)

    def jacobian_of_head_input(self, at: str = "embedding") -> tuple[Jacobian, Tensor]:
        """The Jacobian of the narrow state before a wide head (b d), and its weight (c d)."""
        adapter = self._opened(_needs_of(at))
        positions = adapter.read_positions(self.batch)
        watch = HeadWatch(self.rows.shape[-1])

        def narrow(state: Tensor) -> Tensor:
            with watch, AttentionWatch(), adapter.only_read(positions, self.mask.shape[1]):
                adapter.output_from(self.batch, at, state)
            if watch.state is None:
                raise UnsupportedCombination(
                    f"{adapter.name} has no linear map to all of its outputs.\n  instead:  top_k=10"
                )
            found = watch.state
            if found.dim() == 3 and found.shape[1] > 1:
                assert self.batch.reads is not None
                reads = self.batch.reads.to(found.device)
                found = found.gather(1, reads[..., None].expand(-1, -1, found.shape[-1]))
            return found.flatten(1)

        jacobian = Jacobian(narrow, self.input(at), self._count)
        _ = jacobian.y  # which runs the model
        assert watch.weight is not None
        return jacobian, watch.weight.detach()

    def sum_features(self, state: Tensor) -> Tensor:
        """One number a token (b t) or pixel (b h w): the sum over width or channels."""
        wide = state.float() if state.dtype in (torch.float16, torch.bfloat16) else state
        return wide.sum(dim=1) if state.dim() == 4 else wide.sum(dim=-1)

    def with_absorbed(self, scores: Tensor) -> Attribution:
        """Scores that share out the explained number, with what they leave of it (b)."""
        return Attribution(scores, {"absorbed": self.value - scores.flatten(1).sum(dim=1)})

    # ---- inside the model --------------------------------------------------------------------

    def record(self, what: Needs, *, gradients: bool = False, rules: Rules | None = None) -> Trace:
        """One forward pass of the unchanged input, and what was seen in it.

        `what` is a sum of ATTENTION, VALUES, STREAM, BRANCHES and PROJECTION (with gradients only).
        With `gradients`, the trace can differentiate the explained number with respect to all of
        it, by `rules` of relevance where they are given.
        """
        adapter = self._opened(what | _rules_in(rules))
        if Needs.PROJECTION in what and not gradients:
            raise ArgumentError(
                explain_error(
                    "how heads enter the stream is read from gradients",
                    got=f"record({what}, gradients=False)",
                    expected="a recording with gradients",
                    instead=f"case.record({what}, gradients=True)",
                )
            )
        self.meter.forward()
        with torch.set_grad_enabled(gradients):
            with adapter.following(rules):
                recording = adapter.record(self.batch, what, differentiable=gradients)
            if "stream" in recording.layers:
                self._states.setdefault("embedding", recording.layers["stream"][0].detach())
            return Trace(self._learn(recording.output), recording, self._count_backward)

    def record_scaled(self, rows: Tensor, fractions: Tensor, what: Needs, *, since: int) -> Trace:
        """What is seen when the inputs of these rows are only a fraction of themselves (n each).

        An image is scaled to the image of zeros, a text to a zero stream that enters the first
        block. The trace can differentiate what comes after the beginning of block `since`.
        """
        adapter = self._opened(what | Needs.STREAM)
        objective = self.objective.take(rows)
        batch = self.batch.take(rows)
        state = self.pixels if self.kind == "image" else self.input("embedding")
        scaled = state[rows] * fractions.to(state).view(-1, *[1] * (state.dim() - 1))
        if self.kind == "image":
            batch, embedding = self.images.with_pixels(batch, scaled), None
        else:
            embedding = scaled
        self.meter.forward(rows)
        with torch.enable_grad():
            recording = adapter.record(
                batch, what, differentiable=True, since=since, embedding=embedding
            )
            score = self._number(objective, recording.output, batch)
            return Trace(score, recording, self._count_backward)

    def read(self, flow: Tensor) -> Tensor:
        """The rows of a token-by-token matrix (b t s) that the prediction is read from (b s)."""
        return torch.einsum("bt,bts->bs", self.readout.to(flow), flow)

    @cached_property
    def readout(self) -> Tensor:
        """How much of the prediction is read from each token of the last stream (b t)."""
        adapter = self._opened(Needs.READOUT)
        if self.target.function is None:
            assert adapter.anatomy.readout is not None
            return adapter.anatomy.readout.weights(self.batch, self.mask)
        last = f"hidden:{len(adapter.anatomy.blocks)}"
        self.meter.forward()
        self.meter.forward()
        with torch.enable_grad():
            final = adapter.value_at(self.batch, last).requires_grad_()
            output = adapter.output_from(self.batch, last, final)
            score = self._number(self.objective, output, self.batch)
            weights = read_tokens(score[:, None], final).to(self.mask.device) * self.mask.float()
        return weights / weights.sum(dim=1, keepdim=True).clamp(min=1)

    # ---- changed inputs ----------------------------------------------------------------------

    @property
    def pixels(self) -> Tensor:
        """The images in the numbers that the model reads (b c h w)."""
        return self.batch.inputs[self.images.reader.argument]

    @property
    def images(self) -> Images:
        """The adapter of a model that reads images: its normalisation, and other pixels for it."""
        return cast(Images, self.adapter)

    def drop(self, keep: Tensor, by: Removal = "delete") -> Tensor:
        """The explained number with only the tokens where `keep` is true: b t -> b, b m t -> b m.

        The model's own tokens stay whatever `keep` says of them. `by` is what becomes of the others
        of a text: "delete" leaves them out, "mask", "unk" and "pad" put that token in their place.
        """
        self._use(Needs.TOKEN_DROP)
        return score_kept(self, keep, by)

    @property
    def can_be_emptied(self) -> bool:
        """Whether tokens can be left out until nothing is left of what the user gave.

        Not so for an image where a mean over patches is read.
        """
        if Needs.TOKEN_DROP not in self.adapter.offers or self.kind == "text":
            return Needs.TOKEN_DROP in self.adapter.offers
        readout = cast(TorchAdapter, self.adapter).anatomy.readout
        return readout is not None and bool(readout.singles) and not readout.patches

    def drop_logits(self, keep: Tensor, by: Removal = "delete") -> Tensor:
        """The logits of every class with only the tokens where `keep` is true: b m t -> b m k c."""
        self._use(Needs.TOKEN_DROP)
        return score_kept(self, keep, by, self.logits_of)

    def blank(self, by: Removal) -> Tensor:
        """The word embeddings with one token in the place of all that the user gave (b t d)."""
        adapter = self._opened(Needs.GRADIENTS)
        return adapter.value_at(adapter.without(self.batch, ~self.content, by), "input")

    def shortened(self, by: Removal = "delete") -> Batch:
        """The batch that tokens are left out of: what enters the blocks of an image is known."""
        if self.kind == "text" or by != "delete":
            return self.batch
        return replace(self.batch, start=self._state("embedding"))

    def score_of(self, batch: Batch, rows: Tensor) -> Tensor:
        """The explained number of another batch, whose inputs were made from these rows of ours."""
        objective = self.objective.take(rows)
        self.meter.forward(rows)
        with torch.no_grad():
            value = self._number(objective, self.adapter.output(batch), batch)
        check_finite(value, self.adapter.name)
        return value

    def logits_of(self, batch: Batch, rows: Tensor) -> Tensor:
        """The logits (j k c) of another batch, whose inputs were made from these rows of ours."""
        self.meter.forward(rows)
        with torch.no_grad():
            logits = self.adapter.rows(self.adapter.output(batch), batch)
        check_finite(logits, self.adapter.name)
        return logits

    def answer(self, batch: Batch, rows: Tensor) -> Tensor:
        """All that metrics read of another batch, whose inputs were made from these rows of ours.

        Every quantity of the class, and the class predicted (j q+1).
        """
        logits = self.logits_of(batch, rows)
        numbers = self.objective.take(rows).all_of_rows(logits)
        return torch.cat([numbers, logits[:, :1].argmax(dim=-1)], dim=1)

    @cached_property
    def questions(self) -> tuple[Hashable, ...]:
        """What is asked about each input: which class, where it is read, against which other."""
        assert self.objective.classes is not None
        classes = [tuple(row) for row in self.objective.classes.tolist()]
        items = [_digest(0, "", item) for item in self.batch.items]
        place = (self.target.mask, self.objective.against)
        return tuple((item, own, place) for item, own in zip(items, classes, strict=True))

    def explained_again(
        self,
        row: int,
        explanation: Any,
        method: Callable[..., Any] | None = None,
        *,
        pixels: Tensor | None = None,
        adapter: Adapter | None = None,
    ) -> list[Tensor]:
        """What explained one input says of it again: scores (t) or maps (h w); for metrics.

        With `pixels` (j c h w) it says it of each of these images, with `adapter` of another model.
        """
        assert self._again is not None, "only a case of `measure` can explain again"
        return self._again(self, row, explanation, method, pixels=pixels, adapter=adapter)

    def randomised(self, *, cascading: bool) -> Iterator[tuple[str, Adapter]]:
        """A copy of the model, part by part from the prediction down, with weights drawn anew.

        When `cascading`, the parts before stay as they were drawn. The model itself is untouched.
        """
        return randomised(self._opened(Needs.STREAM), cascading=cascading, seed=self.seed)

    # ---- randomness --------------------------------------------------------------------------

    @cached_property
    def generators(self) -> tuple[torch.Generator, ...]:
        """One source of randomness an input, from the seed, the method and the input alone.

        So an input gets the same numbers alone, in any batch and in any order, and a metric does
        not draw what the method that it measures had drawn.
        """
        return tuple(torch.Generator().manual_seed(seed) for seed in self._seeds)

    def generators_of(self, purpose: str) -> tuple[torch.Generator, ...]:
        """One more source an input, the same for all methods, and the same for all metrics."""
        role = "" if self._spec is None else self._spec.role
        seeds = [_digest(self.seed, f"{role}s' {purpose}", item) for item in self.batch.items]
        return tuple(torch.Generator().manual_seed(seed) for seed in seeds)

    def generator(self, row: int, number: int) -> torch.Generator:
        """The randomness of one version of an input, the same whenever that version is made."""
        digest = hashlib.sha256(f"{self._seeds[row]} {number}".encode()).digest()
        return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)

    @cached_property
    def _seeds(self) -> tuple[int, ...]:
        return tuple(_digest(self.seed, self._purpose, item) for item in self.batch.items)

    @property
    def _sizes(self) -> list[tuple[int, ...]]:
        """Rows and columns of the pictures."""
        return [item.view.shape[:2] for item in self.batch.items if isinstance(item, Picture)]

    def randn(self) -> Tensor:
        """A standard normal number a token (b t), or a pixel where the model has no tokens (b h w).

        Each input draws for itself, at its own length, so padding changes nothing; it gets zero.
        """
        if self.mask.shape[1] == 0:
            drawn = [
                torch.randn(s, generator=g)
                for s, g in zip(self._sizes, self.generators, strict=True)
            ]
            return torch.stack(drawn).to(self.mask.device)
        out = torch.zeros(self.mask.shape)
        for row, real, generator in zip(out, self.mask.cpu(), self.generators, strict=True):
            row[real] = torch.randn(int(real.sum()), generator=generator)
        return out.to(self.mask.device)

    def ones(self) -> Tensor:
        """One for every token (b t), or pixel where the model has no tokens (b h w)."""
        if self.mask.shape[1] == 0:
            return torch.stack([torch.ones(size) for size in self._sizes]).to(self.mask.device)
        return self.mask.float()

    # ---- inside ------------------------------------------------------------------------------

    def _count_backward(self) -> None:
        self.meter.backwards += 1

    def _count(self, forwards: int, backwards: int) -> None:
        for _ in range(forwards):
            self.meter.forward()
        self.meter.backwards += backwards

    def _opened(self, needs: Needs) -> TorchAdapter:
        """The adapter, once it is sure that it offers what is about to be used."""
        self._use(needs)
        return cast(TorchAdapter, self.adapter)

    def _use(self, needs: Needs) -> None:
        self.used |= needs
        spec = self._spec
        if spec is not None and getattr(spec, "declared", True) and needs & ~spec.needs:
            undeclared = needs & ~spec.needs
            raise ArgumentError(
                explain_error(
                    f"{spec.role} {spec.name!r} asked for something that it did not declare",
                    got=f"{undeclared}",
                    expected=f"needs={spec.needs}",
                    instead=f"declare needs={spec.needs | undeclared}",
                )
            )
        absent = needs & ~self.adapter.offers
        if absent:
            name = "a function" if spec is None else f"{spec.role} {spec.name!r}"
            reasons = "; ".join(f"{MEANING[flag]}: {self.adapter.missing(flag)}" for flag in absent)
            raise UnsupportedCombination(
                f"{name} cannot run on this model ({self.adapter.name}).\n  missing:  {reasons}"
            )


def _needs_of(at: str) -> Needs:
    """What varying the state at a place asks of a model."""
    if at == "input":
        return Needs.GRADIENTS
    return Needs.STREAM | Needs.BRANCHES if at.startswith("normed:") else Needs.STREAM


def _rules_in(rules: Rules | None) -> Needs:
    """What following rules of relevance asks of a model."""
    return Needs.NOTHING if rules is None else Needs.RULES


def _digest(seed: int, purpose: str, item: Text | Picture) -> int:
    """A seed for one input: SHA-256 of the user's seed, of the method, and of the input."""
    content: Sequence[bytes] = (
        [part.encode() for part in item.parts] if isinstance(item, Text) else [item.view.tobytes()]
    )
    digest = hashlib.sha256(f"{seed} {purpose}".encode())
    for part in content:
        digest.update(b"\0" + part)
    return int.from_bytes(digest.digest()[:8], "big") >> 1

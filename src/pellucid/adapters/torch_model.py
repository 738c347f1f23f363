"""Any torch module, opened up from outside: places, recording, dropped tokens, all restored."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from threading import RLock
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from pellucid._errors import (
    ArgumentError,
    ModelError,
    NumericalError,
    UnsupportedCombination,
    explain_error,
)
from pellucid._needs import Needs
from pellucid._types import Batch
from pellucid.adapters.anatomy import Anatomy, examine
from pellucid.adapters.base import Adapter, Task
from pellucid.adapters.branches import branches_of, places_of_branches
from pellucid.record import precision
from pellucid.record.attention import Attention, AttentionWatch
from pellucid.record.places import Place, edited, reached, recorded, replaced
from pellucid.record.reading import look_behind, only_read
from pellucid.record.trace import Recorded, Recording
from pellucid.relevance.activations import find_activations
from pellucid.relevance.gradient import GradientRules
from pellucid.relevance.rules import Rules
from pellucid.relevance.watch import following

Call = Callable[[nn.Module, Mapping[str, Tensor]], Any]

_OF_HEADS = Needs.ATTENTION | Needs.VALUES | Needs.PROJECTION
_OF_BRANCHES = Needs.BRANCHES | Needs.PROJECTION
_OF_STREAM = Needs.STREAM | _OF_BRANCHES


@dataclass(frozen=True)
class Hints:
    """What a user may say of a module that cannot be discovered."""

    blocks: tuple[nn.Module, ...] | None = None
    word_embedding: nn.Module | None = None
    prefix: int | None = None
    grid: tuple[int, int] | None = None


def call_by_name(module: nn.Module, inputs: Mapping[str, Tensor]) -> Any:
    """The calling convention of Hugging Face models."""
    return module(**inputs)


def call_by_position(module: nn.Module, inputs: Mapping[str, Tensor]) -> Any:
    """The calling convention of timm and of most plain modules: the one tensor."""
    return module(next(iter(inputs.values())))


def logits_of(output: Any) -> Tensor:
    """The class scores in a tensor, a tuple, a dictionary or a Hugging Face output."""
    if isinstance(output, Tensor):
        return output
    found = getattr(output, "logits", None)
    if isinstance(found, Tensor):
        return found
    values = output.values() if isinstance(output, Mapping) else output
    if isinstance(values, Iterable):
        for value in values:  # what stands first, as the start logits of question answering
            if isinstance(value, Tensor) and value.dim() >= 2:
                return value
    raise ModelError(
        explain_error(
            "the model's output holds no logits",
            got=type(output).__name__,
            expected="a tensor, a tuple that begins with one, or an object with .logits",
            instead="target=lambda output: ... (one number an input)",
        )
    )


_WORTH_SAVING = 2**24  # multiplications and additions; less costs more to avoid than to do
_locks: WeakKeyDictionary[nn.Module, RLock] = WeakKeyDictionary()  # one a module, for its hooks


class TorchAdapter(Adapter):
    """A torch module that is never changed: hooks live in `with` blocks, one thread at a time."""

    def __init__(
        self,
        module: nn.Module,
        *,
        name: str,
        task: Task,
        labels: Sequence[str],
        call: Call = call_by_name,
        hints: Hints | None = None,
    ) -> None:
        self.module = module
        self.name = name
        self.task = task
        self.labels = tuple(labels)
        self._call = call
        self._hints = hints or Hints()
        self._hashed: tuple[object, str] | None = None

    def __repr__(self) -> str:
        return f"<pellucid model {self.name}: {self.task} of {self.kind}s>"

    # ---- what each kind of input decides -----------------------------------------------------

    @property
    @abstractmethod
    def _input_place(self) -> Place | None:
        """The output of the word embedding; None where the input is the argument itself."""

    @abstractmethod
    def _probe(self) -> Batch:
        """Two small inputs on which the anatomy is read."""

    @abstractmethod
    def _drop_problem(self, anatomy: Anatomy) -> str | None:
        """Why tokens cannot be left out, or None."""

    # ---- what it is --------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        found = next((p.device for p in self.module.parameters()), torch.device("cpu"))
        return torch.device("cpu") if found.type == "meta" else found  # accelerate moves it on

    @property
    def dtype(self) -> torch.dtype:
        found = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        return next(found, torch.get_default_dtype())

    @cached_property
    def anatomy(self) -> Anatomy:
        """What the model is made of, found on a small probe at first use."""
        self.check_state()
        with self._alone(), precision.formulas(self.device):
            found = examine(
                self.module,
                lambda batch: logits_of(self._call(self.module, batch.inputs)),
                self._probe(),
                blocks=self._hints.blocks,
                input_place=self._input_place,
                prefix=self._hints.prefix,
            )
            found.grant(Needs.TOKEN_DROP, self._drop_problem(found))
            self._look_behind(found)
            found.grant(Needs.RULES, self._rules_problem(found))
        if self.task == "other" and Needs.STREAM in found.offers:
            found.grant(Needs.READOUT, None)  # the user's function decides what is read
        return found

    @cached_property
    def offers(self) -> Needs:
        return self.anatomy.offers

    def missing(self, flag: Needs) -> str:
        return self.anatomy.missing.get(flag, "not offered")

    def check_state(self) -> None:
        check_not_compiled(self.module)
        for name, child in self.module.named_modules():
            if child.training:
                raise ModelError(
                    explain_error(
                        "the model is in training mode: dropout would make every answer random",
                        got=f"{name or self.name}.training == True",
                        expected="a model in evaluation mode",
                        instead="model.eval()",
                    )
                )

    def weights_hash(self) -> str:
        """SHA-256 over names, shapes, types and bytes of all weights, computed once.

        "partial" says that some weights lie on disk, where only their shapes are seen.
        """
        state = list(self.module.state_dict(keep_vars=True).items())
        version = tuple(_glimpse(tensor) for _, tensor in state)
        if self._hashed is not None and self._hashed[0] == version:
            return self._hashed[1]
        digest = hashlib.sha256()
        for name, tensor in state:
            _check_weight(name, tensor)
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            if not tensor.is_meta:
                raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
                digest.update(memoryview(raw.numpy()))
        offloaded = any(tensor.is_meta for _, tensor in state)
        self._hashed = (version, "partial " * offloaded + digest.hexdigest())
        return self._hashed[1]

    # ---- running -----------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Hooks are on the module, which other threads may share: one pass at a time."""
        with _locks.setdefault(self.module, RLock()):
            yield

    def output(self, batch: Batch) -> Any:
        with self._alone(), ExitStack() as stack:
            inputs = self._started(batch, stack)
            stack.enter_context(precision.model(self.device))
            return self._call(self.module, inputs)

    def output_from(self, batch: Batch, at: str, x: Tensor) -> Any:
        """The output when the state at a place is `x`: "input", "embedding" or "hidden:l"."""
        with self._alone(), replaced(self._place(at), x), self._unfused():
            return self.output(replace(batch, start=None))

    def value_at(self, batch: Batch, at: str) -> Tensor:
        """The state of the model at a place (b t d, or b c h w for the pixels of an image).

        Nothing behind the place is computed.
        """
        place = self._place(at)
        with self._alone(), torch.no_grad(), self._unfused(), reached(place) as seen:
            self.output(batch)
        return seen[0].detach()

    def record(
        self,
        batch: Batch,
        what: Needs,
        *,
        differentiable: bool,
        since: int = 0,
        embedding: Tensor | None = None,
    ) -> Recording:
        """The output, and what was asked for, layer by layer; PROJECTION must be differentiable.

        The graph begins at block `since`; `embedding` takes the place of what enters the first.
        """
        attention: list[Attention] = []
        with self._alone(), ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(differentiable))
            if embedding is not None:
                stack.enter_context(replaced(self.anatomy.embedding, embedding))
            if differentiable:
                start = Place(self.anatomy.blocks[since], "input")
                stack.enter_context(edited(start, _as_leaf))
            seen = stack.enter_context(recorded(self._recording_places(what)))
            if what & _OF_HEADS:
                stack.enter_context(AttentionWatch(attention.append))
            else:
                stack.enter_context(self._unfused())
            output = self.output(batch)
        return self._recording(output, what, attention, seen)

    def _recording(
        self, output: Any, what: Needs, attention: list[Attention], seen: Mapping[str, Tensor]
    ) -> Recording:
        layers: dict[Recorded, list[Tensor]] = {}
        if Needs.ATTENTION in what:
            layers["attention"] = [found.probabilities for found in attention]
        if Needs.VALUES in what:
            layers["values"] = [found.values for found in attention if found.values is not None]
        if what & _OF_STREAM:
            layers["stream"] = [seen[str(i)] for i in range(len(self.anatomy.blocks) + 1)]
        carriers = dict(layers)
        if what & _OF_BRANCHES:
            attended, fed = branches_of(self.anatomy, seen)
            layers["attention_base"], layers["mlp_base"] = attended.before, fed.before
            layers["attention_read"], layers["mlp_read"] = attended.read, fed.read
            layers["attention_branch"], layers["mlp_branch"] = attended.added, fed.added
            carriers["attention_branch"] = attended.after  # a sum passes its gradient on
            carriers["mlp_branch"] = fed.after
        if Needs.PROJECTION in what:
            layers["projection"] = [
                found.projection.scaled(after)
                for found, after in zip(attention, carriers["attention_branch"], strict=True)
                if found.projection is not None
            ]
        return Recording(output, layers, carriers)

    @contextmanager
    def following(self, rules: Rules | None) -> Iterator[None]:
        """Inside the block, derivatives of the model follow these rules; None leaves them alone."""
        if rules is None:
            yield
            return
        with self._alone(), following(rules, self.anatomy.activations, self.module):
            yield

    def _rules_problem(self, anatomy: Anatomy) -> str | None:
        """Which operation on the probe no rule is known for, or None."""
        if Needs.GRADIENTS not in anatomy.offers:
            return anatomy.missing[Needs.GRADIENTS]
        probe = self._probe()
        with torch.no_grad():
            anatomy.activations = find_activations(self.module, lambda: self.output(probe))
        with torch.inference_mode(False), torch.enable_grad():
            leaf = self.value_at(probe, "input").clone().requires_grad_()
            try:
                with following(GradientRules(), anatomy.activations, self.module) as watch:
                    logits = logits_of(self.output_from(probe, "input", leaf))
                torch.autograd.grad(logits.sum(), leaf)
            except UnsupportedCombination:
                return f"no rule is known for {watch.stopped_at}"
            except RuntimeError as error:
                return f"its operations cannot be watched one by one ({str(error).splitlines()[0]})"
        return None

    def read_positions(self, batch: Batch) -> Tensor | None:
        """The few tokens that the prediction is read from (b k).

        None where it is not so, or where leaving the others out would save too little.
        """
        anatomy = self.anatomy
        saved = batch.mask.numel() * sum(linear.weight.numel() for linear in anatomy.behind)
        if anatomy.readout is None or saved < _WORTH_SAVING:
            return None
        return anatomy.readout.positions(batch, batch.mask)

    def only_read(self, positions: Tensor | None, tokens: int) -> AbstractContextManager[Any]:
        """Inside the block, nothing is computed for tokens that no prediction reads.

        Their states mean nothing behind the last attention. With no positions all is computed.
        """
        if positions is None:
            return nullcontext()
        return only_read(self.anatomy.behind, positions, tokens)

    def exact_softmax(self) -> AbstractContextManager[Any]:
        """Inside the block, the softmax of attention has the digits that the model has.

        Attention that a model writes out in plain steps may be done in float32 whatever the type
        of the weights; fused attention is as exact as its inputs and needs nothing.
        """
        return AttentionWatch() if self.anatomy.written_out else nullcontext()

    def _look_behind(self, anatomy: Anatomy) -> None:
        """How attention is done, and which maps follow it that tokens pass through one by one."""
        if Needs.ATTENTION not in anatomy.offers:
            return
        probe, outputs = self._probe(), []

        def forward() -> None:
            outputs.append(logits_of(self._call(self.module, probe.inputs)))

        with torch.no_grad(), recorded({"first": anatomy.embedding}) as stream:
            found = look_behind(self.module, forward, len(anatomy.blocks))
            anatomy.written_out = found.written_out
            mask = torch.ones(stream["first"].shape[:2], dtype=torch.bool, device=self.device)
            mask = probe.mask if probe.mask.shape == mask.shape else mask
            readout = anatomy.readout
            positions = None if readout is None else readout.positions(probe, mask)
            if positions is None:
                return
            with only_read(found.maps, positions, mask.shape[1]):
                forward()
        whole, alone = outputs
        if probe.reads is not None:
            index = probe.reads.to(whole.device)[..., None].expand(-1, -1, whole.shape[-1])
            whole, alone = whole.gather(1, index), alone.gather(1, index)
        tolerance = 1e-3 if self.dtype in (torch.float32, torch.float64) else 5e-2
        if (whole - alone).abs().max() <= tolerance * whole.abs().max():
            anatomy.behind = found.maps

    def _unfused(self) -> AbstractContextManager[Any]:
        """torch's own encoder leaves its layers aside in a fused path, unless a mode is active."""
        return AttentionWatch() if self._fuses else nullcontext()

    @cached_property
    def _fuses(self) -> bool:
        return any(isinstance(child, nn.TransformerEncoder) for child in self.module.modules())

    def _recording_places(self, what: Needs) -> dict[str, Place]:
        places: dict[str, Place] = {}
        if what & _OF_STREAM:
            places |= self.anatomy.stream()
        if what & _OF_BRANCHES:
            places |= places_of_branches(self.anatomy)
        return places

    def rows(self, output: Any, batch: Batch) -> Tensor:
        logits = logits_of(output)
        if batch.reads is None:
            return logits[:, None]  # b 1 c
        if logits.shape[1] != batch.mask.shape[1]:
            raise ModelError(
                explain_error(
                    "the model answers for another number of tokens than the text has",
                    got=f"{logits.shape[1]} rows of logits for {batch.mask.shape[1]} tokens",
                    expected="one row a token (prompt tuning adds rows of its own)",
                    instead="merge or remove the virtual tokens before explaining",
                )
            )
        reads = batch.reads.to(logits.device)
        return logits.gather(1, reads[..., None].expand(-1, -1, logits.shape[-1]))

    # ---- inside ------------------------------------------------------------------------------

    def _place(self, at: str) -> Place:
        if at == "input" and self._input_place is not None:
            return self._input_place
        anatomy = self.anatomy
        if at == "embedding":
            return anatomy.embedding
        kind, _, number = at.partition(":")
        layers = len(anatomy.blocks)
        if kind == "normed" and number.isdigit() and int(number) < layers:
            norm, _ = anatomy.middles[int(number)]
            if norm is not None and anatomy.pre_norm:
                return replace(norm, side="output")
            kind = "hidden"  # the attention reads the stream itself
        if kind != "hidden" or not number.isdigit() or int(number) > layers:
            raise ArgumentError(
                explain_error(
                    "there is no such place in this model",
                    got=f"at={at!r}",
                    expected=f"'input', 'embedding', 'hidden:0' to 'hidden:{layers}', or "
                    f"'normed:0' to 'normed:{layers - 1}', which is what an attention reads",
                    instead="at='embedding'",
                )
            )
        return (
            anatomy.last if int(number) == layers else Place(anatomy.blocks[int(number)], "input")
        )

    def _started(self, batch: Batch, stack: ExitStack) -> Mapping[str, Tensor]:
        """Let only the kept tokens of an image into the first block; what the model is given.

        Where the stream before the first block is known, what computes it is spared.
        """

        def kept(stream: Tensor) -> Tensor:
            if batch.kept is None:
                return stream
            index = batch.kept[..., None].to(stream.device)
            return stream.gather(1, index.expand(-1, -1, stream.shape[-1]))

        if batch.start is None:
            if batch.kept is not None:
                stack.enter_context(edited(self.anatomy.embedding, kept))
            return batch.inputs
        stack.enter_context(replaced(self.anatomy.embedding, kept(batch.start)))
        if not self.anatomy.starts_alone:
            return batch.inputs
        return {name: tensor[:1] for name, tensor in batch.inputs.items()}


def check_not_compiled(module: nn.Module) -> None:
    """Refuse what torch.compile made: its inside does not pass through hooks."""
    for name, child in module.named_modules():
        wrapped = type(child).__name__ == "OptimizedModule"
        if wrapped or child._compiled_call_impl is not None:
            raise ModelError(
                explain_error(
                    "a compiled model cannot be observed from outside",
                    got=f"{name or type(module).__name__}, compiled by torch",
                    expected="the model as it was before",
                    instead="pellucid.adapt(model._orig_mod, processor)"
                    if wrapped and not name
                    else "the model before torch.compile of that part"
                    if wrapped
                    else "pellucid.adapt(copy.deepcopy(model), processor), which is not compiled",
                )
            )


def _check_weight(name: str, tensor: Tensor) -> None:
    """A fused kernel may hide one bad weight from the prediction, but not from an explanation."""
    if not isinstance(tensor, nn.Parameter) or tensor.is_meta or not tensor.is_floating_point():
        return
    if not torch.isfinite(tensor).all():
        bad = int((~torch.isfinite(tensor)).sum())
        raise NumericalError(
            explain_error(
                "the weights of the model are not finite",
                got=f"{bad} of {tensor.numel()} numbers of {name} are NaN or infinite",
                expected="finite weights",
                instead="load the checkpoint again, or train it anew",
            )
        )


def _as_leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _glimpse(tensor: Tensor) -> tuple[object, ...]:
    """Enough of a tensor to notice that it changed: its identity, version and a few numbers."""
    sample: list[float] = []
    if not tensor.is_meta and tensor.numel():
        flat = tensor.detach().reshape(-1)
        sample = flat[:: max(1, flat.numel() // 16)].double().cpu().tolist()
    return id(tensor), tensor._version, tensor.device, tensor.dtype, *sample

"""What a model is made of, found by watching one forward pass instead of knowing its name.

A small probe batch runs once. Where attention happened tells which modules are the blocks; their
inputs are the residual stream; the patch that was changed between the two probe images tells which
token is which patch; the gradient of the logits tells which token the prediction is read from.
What cannot be established is not offered, and the reason is kept for the error message.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid._needs import Needs, flags
from pellucid._types import Batch, Text
from pellucid.record.attention import Attention, AttentionWatch
from pellucid.record.places import Place, edited, recorded
from pellucid.record.projection import affine_gap

_INSIDE = Needs.ATTENTION | Needs.VALUES | Needs.BRANCHES | Needs.PROJECTION | Needs.READOUT

Forward = Callable[[Batch], Tensor]  # the logits, with the graph


@dataclass(frozen=True)
class Readout:
    """Which tokens of the last stream the prediction is read from."""

    kind: Literal["first", "last", "mean", "reads", "fixed"]
    singles: tuple[int, ...] = ()  # fixed: tokens in front of the patches that are read
    patches: bool = False  # fixed: whether the mean over the patches is read, as one more token
    prefix: int = 0  # fixed: how many tokens stand before the patches

    def weights(self, batch: Batch, mask: Tensor) -> Tensor:
        """One weight a token, summing to one an input (b t)."""
        weights = torch.zeros(mask.shape, device=mask.device)
        if self.kind == "mean":
            weights = mask.float()
        elif self.kind == "first":
            weights.scatter_(1, mask.float().argmax(dim=1, keepdim=True), 1.0)
        elif self.kind == "last":
            order = torch.arange(mask.shape[1], device=mask.device) * mask
            weights.scatter_(1, order.argmax(dim=1, keepdim=True), 1.0)
        elif self.kind == "reads":
            assert batch.reads is not None
            weights.scatter_(1, batch.reads, 1.0)
        else:
            weights[:, list(self.singles)] = 1.0
            if self.patches:
                weights[:, self.prefix :] = 1.0 / (mask.shape[1] - self.prefix)
        return weights / weights.sum(dim=1, keepdim=True)

    def positions(self, batch: Batch, mask: Tensor) -> Tensor | None:
        """The few tokens that are read (b k); None where it is a pooling of all."""
        if self.kind == "mean" or self.patches:
            return None
        read = self.weights(batch, mask) > 0
        return read.nonzero()[:, 1].view(len(mask), -1)


@dataclass
class Anatomy:
    """What one forward pass revealed; `missing` says why the rest is not offered."""

    blocks: tuple[nn.Module, ...] = ()
    middles: tuple[tuple[Place | None, Place], ...] = ()  # each block's two normalisations
    pre_norm: bool = True
    readout: Readout | None = None
    prefix: int = 0
    patchify: nn.Module | None = None
    behind: tuple[nn.Linear, ...] = ()  # maps after the last attention: a token at a time
    written_out: bool = True  # attention is done in plain steps, not by a fused operation
    activations: tuple[nn.Module, ...] = ()  # modules that are an element-wise function
    starts_alone: bool = False  # one image's pixels will do in front of a stream that is known
    offers: Needs = Needs.NOTHING
    missing: dict[Needs, str] = field(default_factory=dict)

    @property
    def embedding(self) -> Place:
        """Where the stream begins: the input of the first block."""
        return Place(self.blocks[0], "input")

    @property
    def last(self) -> Place:
        """Where the stream ends: the output of the last block."""
        return Place(self.blocks[-1], "output")

    def stream(self) -> dict[str, Place]:
        """The places of the stream: before each block, and after the last."""
        return {str(i): Place(block, "input") for i, block in enumerate(self.blocks)} | {
            str(len(self.blocks)): self.last
        }

    def grant(self, flag: Needs, reason: str | None) -> bool:
        """Offer the flag, or keep the reason why not."""
        if reason is None:
            self.offers |= flag
        else:
            self.missing[flag] = reason
        return reason is None


@dataclass
class Observation:
    """Everything that the probe's forward pass showed."""

    attention: list[Attention] = field(default_factory=list)
    active: list[frozenset[tuple[str, int]]] = field(default_factory=list)  # a set each attention
    stream: dict[str, Tensor] = field(default_factory=dict)
    normed: list[tuple[nn.Module, Tensor]] = field(default_factory=list)
    sources: list[Tensor] = field(default_factory=list)  # leaves put at the input
    returned: list[tuple[nn.Module, Tensor]] = field(default_factory=list)  # by any module
    logits: Tensor | None = None


def find_blocks(module: nn.Module, forward: Forward, probe: Batch) -> tuple[nn.Module, ...] | str:
    """The repeated blocks: the list of modules in each of which attention happens exactly once."""
    seen = Observation()
    lists = {
        name: child
        for name, child in module.named_modules()
        if isinstance(child, nn.ModuleList | nn.Sequential) and len(child)
    }
    with torch.no_grad(), _active_elements(lists) as active:
        watch = AttentionWatch(lambda attention: seen.active.append(frozenset(active)))
        with watch:
            forward(probe)
    total = len(seen.active)
    if total == 0:
        return "no attention operation was seen in its forward pass"
    found = Counter(element for elements in seen.active for element in elements)
    for name, container in lists.items():
        if len(container) == total and all(found[name, i] == 1 for i in range(total)):
            return tuple(container)
    return (
        f"its {total} attention operations are not spread one by one over a list of blocks "
        "(windows, stages or shared layers)"
    )


@torch.inference_mode(False)
@torch.enable_grad()
def examine(
    module: nn.Module,
    forward: Forward,
    probe: Batch,
    *,
    blocks: tuple[nn.Module, ...] | None = None,
    input_place: Place | None = None,
    prefix: int | None = None,
) -> Anatomy:
    """Run the probe and say what this model offers. Image probes differ in their first patch."""
    anatomy = Anatomy()
    found = blocks if blocks is not None else find_blocks(module, forward, probe)
    anatomy.blocks = () if isinstance(found, str) else found
    reads_text = isinstance(probe.items[0], Text)
    seen = _observe(module, anatomy, forward, probe, input_place)
    anatomy.grant(Needs.GRADIENTS, _gradient_problem(seen))
    if not anatomy.grant(Needs.STREAM, _stream_problem(found, seen, probe)):
        reason = anatomy.missing[Needs.STREAM]
        for flag in flags(_INSIDE):
            anatomy.grant(flag, reason)
        anatomy.grant(Needs.TOKENS, None if reads_text else reason)
        return anatomy
    tokens = seen.stream["0"].shape[1]
    anatomy.grant(Needs.ATTENTION, _attention_problem(seen, len(anatomy.blocks), tokens))
    anatomy.grant(Needs.VALUES, _values_problem(anatomy, seen))
    anatomy.grant(Needs.BRANCHES, _find_middles(anatomy, seen))
    anatomy.grant(Needs.PROJECTION, _projection_problem(anatomy, seen))
    anatomy.grant(Needs.TOKENS, None if reads_text else _find_patches(anatomy, seen, prefix))
    find_readout = _find_text_readout if reads_text else _find_image_readout
    anatomy.grant(Needs.READOUT, find_readout(anatomy, seen, probe))
    return anatomy


# ---- the one forward pass ------------------------------------------------------------------------


def _observe(
    module: nn.Module,
    anatomy: Anatomy,
    forward: Forward,
    probe: Batch,
    input_place: Place | None,
) -> Observation:
    """Run the probe with its graph, from a leaf put at the input."""
    seen = Observation()

    def root(tensor: Tensor) -> Tensor:
        seen.sources.append(tensor.detach().requires_grad_())
        return seen.sources[-1]

    def kept(store: list[Any], child: nn.Module) -> Callable[[Tensor], None]:
        return lambda tensor: store.append((child, tensor))

    with ExitStack() as stack:
        if input_place is not None:
            stack.enter_context(edited(input_place, root))
        else:
            name, pixels = next(iter(probe.inputs.items()))
            probe = Batch({**probe.inputs, name: root(pixels)}, probe.items, probe.mask)
        for child in module.modules():
            stack.enter_context(edited(Place(child, "output"), kept(seen.returned, child)))
            if _is_norm(child):
                stack.enter_context(edited(Place(child, "input"), kept(seen.normed, child)))
        if anatomy.blocks:
            seen.stream = stack.enter_context(recorded(anatomy.stream()))
        stack.enter_context(AttentionWatch(seen.attention.append))
        seen.logits = forward(probe)
    return seen


@contextmanager
def _active_elements(lists: Mapping[str, nn.Module]) -> Iterator[set[tuple[str, int]]]:
    """A set that holds, during a forward pass, which elements of which list are running."""
    active: set[tuple[str, int]] = set()

    def entering(element: tuple[str, int]) -> Callable[..., None]:
        return lambda *_: active.add(element)

    def leaving(element: tuple[str, int]) -> Callable[..., None]:
        return lambda *_: active.discard(element)

    handles = []
    try:
        for name, container in lists.items():
            for index, child in enumerate(container.children()):
                handles.append(child.register_forward_pre_hook(entering((name, index))))
                handles.append(child.register_forward_hook(leaving((name, index))))
        yield active
    finally:
        for handle in handles:
            handle.remove()


# ---- what it showed, one question each; the answer is a problem in words, or None ----------------


def _gradient_problem(seen: Observation) -> str | None:
    assert seen.logits is not None
    if not seen.sources:
        return "its word table was not seen to run"
    if len(seen.sources) > 1:
        return "its word table is read more than once, so no single input can be varied"
    shape = tuple(seen.sources[0].shape)
    if shape[0] != len(seen.logits):
        return f"its input is read as a tensor of shape {shape}, whose first axis is not the batch"
    if seen.logits.requires_grad:
        (found,) = torch.autograd.grad(
            seen.logits.sum(), seen.sources[0], retain_graph=True, allow_unused=True
        )
        if found is not None:
            return None
    return "its forward pass cuts the graph (no_grad, integer arithmetic or a custom kernel)"


def _stream_problem(
    found: tuple[nn.Module, ...] | str, seen: Observation, probe: Batch
) -> str | None:
    if isinstance(found, str):
        return found
    if len(seen.stream) != len(found) + 1:
        return "its blocks do not pass on one tensor of tokens"
    shapes = {tuple(tensor.shape) for tensor in seen.stream.values()}
    if len(shapes) != 1:
        return f"its tokens change in number or width from block to block: {sorted(shapes)}"
    shape = shapes.pop()
    if len(shape) != 3 or shape[0] != len(probe):
        return f"its blocks pass on tensors of shape {shape}, not (batch, tokens, width)"
    if isinstance(probe.items[0], Text) and shape[1] != probe.mask.shape[1]:
        return f"{shape[1]} tokens were seen in its blocks for {probe.mask.shape[1]} in the text"
    return None


def _attention_problem(seen: Observation, blocks: int, tokens: int) -> str | None:
    if len(seen.attention) != blocks:
        return f"{len(seen.attention)} attention operations were seen in {blocks} blocks"
    shapes = {tuple(found.probabilities.shape[-2:]) for found in seen.attention}
    if shapes != {(tokens, tokens)}:
        return f"its attention maps are {sorted(shapes)}, not over all {tokens} tokens"
    return None


def _values_problem(anatomy: Anatomy, seen: Observation) -> str | None:
    if Needs.ATTENTION not in anatomy.offers:
        return anatomy.missing[Needs.ATTENTION]
    if any(found.values is None for found in seen.attention):
        return "the product of its attention maps with the values was not seen"
    return None


def _find_middles(anatomy: Anatomy, seen: Observation) -> str | None:
    """The two normalisations of each block, between which the attention branch is added."""
    middles: list[tuple[Place | None, Place]] = []
    styles = set()
    for index, block in enumerate(anatomy.blocks):
        entering, leaving = seen.stream[str(index)], seen.stream[str(index + 1)]
        inside = set(block.modules())
        norms = [(m, x) for m, x in seen.normed if m in inside and x.shape == entering.shape]
        outputs = [(m, y) for m, y in seen.returned if m in inside and y.shape == entering.shape]
        if not 1 <= len(norms) <= 2:
            return f"a block has {len(norms)} normalisations of its stream where two are known"
        second, before_mlp = norms[-1]
        first = norms[0][0] if len(norms) == 2 else None
        pre = first is None or torch.equal(norms[0][1], entering)
        if pre:  # x + attention -> norm -> MLP
            branch, rest = before_mlp - entering, leaving - before_mlp
        else:  # norm(x + attention), then norm(that + MLP), which leaves the block
            between = next(y for m, y in outputs if m is first)
            branch, rest = norms[0][1] - entering, before_mlp - between
            if not any(m is second and torch.equal(y, leaving) for m, y in outputs):
                return "what leaves a block is not what its last normalisation returns"
        if not (_is_returned(branch, outputs) and _is_returned(rest, outputs)):
            return "what a block adds to its stream is returned by none of its parts"
        styles.add(pre)
        middles.append((None if first is None else Place(first, "input"), Place(second, "input")))
    if len(styles) > 1:
        return "some of its blocks normalise before a branch and some after"
    anatomy.middles, anatomy.pre_norm = tuple(middles), styles == {True}
    return None


def _is_returned(branch: Tensor, outputs: Sequence[tuple[nn.Module, Tensor]]) -> bool:
    """Whether a difference of the stream is, but for rounding, what some module returned."""
    size = branch.abs().max()
    tolerance = 1e-3 if branch.dtype in (torch.float32, torch.float64) else 5e-2
    return bool(size > 0) and any(
        bool((branch - output).abs().max() <= tolerance * size) for _, output in outputs
    )


def _projection_problem(anatomy: Anatomy, seen: Observation) -> str | None:
    """The heads, projected and summed, must be the attention branch but for one bias."""
    for flag in (Needs.VALUES, Needs.BRANCHES):
        if flag not in anatomy.offers:
            return anatomy.missing[flag]
    given = dict(reversed(seen.normed))  # the first pass of each
    for index, (attention, middle) in enumerate(zip(seen.attention, anatomy.middles, strict=True)):
        first, second = middle
        after = given[second.module if anatomy.pre_norm or first is None else first.module]
        if attention.projection is None or not after.requires_grad:
            return "no linear map of all heads side by side was seen behind its attention"
        assert attention.values is not None
        weight = attention.projection.scaled(after)  # h c d
        branch = after - seen.stream[str(index)]
        gap, size = affine_gap(attention.probabilities, attention.values, weight, branch)
        tolerance = 1e-3 if branch.dtype in (torch.float32, torch.float64) else 5e-2
        if not gap <= tolerance * size:
            return "what its heads read is not what a linear map of them adds to the stream"
    return None


def _find_patches(anatomy: Anatomy, seen: Observation, prefix: int | None) -> str | None:
    """The number of tokens before the patches, checked by the one patch that was changed."""
    stream = seen.stream["0"].detach()
    convolutions = [(m, y) for m, y in seen.returned if _is_patchify(m)]
    if convolutions:
        anatomy.patchify, patch_grid = convolutions[0]
        patches = patch_grid.shape[-2] * patch_grid.shape[-1]
        anatomy.prefix = stream.shape[1] - patches
    elif prefix is not None:
        anatomy.prefix, patches = prefix, stream.shape[1] - prefix
    else:
        return "no patch embedding (a convolution whose stride is its kernel) was seen"
    if anatomy.prefix < 0:
        return f"{stream.shape[1]} tokens were seen for {patches} patches"
    difference = (stream[0] - stream[1]).abs().amax(dim=-1)
    changed = (difference > 1e-3 * difference.max()).nonzero().squeeze(-1).tolist()
    if changed != [anatomy.prefix]:
        return f"changing the first patch changed tokens {changed[:5]}, not {anatomy.prefix} alone"
    return None


def _find_text_readout(anatomy: Anatomy, seen: Observation, probe: Batch) -> str | None:
    if probe.reads is not None:
        anatomy.readout = Readout("reads")
        return None
    read = _tokens_read(anatomy, seen)
    kinds: tuple[Literal["first", "last", "mean"], ...] = ("first", "last", "mean")
    for kind in kinds:
        weights = Readout(kind).weights(probe, probe.mask)
        if read is not None and torch.equal(weights.to(read.device) > 0, read):
            anatomy.readout = Readout(kind)
            return None
    return _unknown_readout(read)


def _find_image_readout(anatomy: Anatomy, seen: Observation, probe: Batch) -> str | None:
    if Needs.TOKENS not in anatomy.offers:
        return anatomy.missing[Needs.TOKENS]
    read = _tokens_read(anatomy, seen)
    if read is not None and torch.equal(read[0], read[-1]):
        front, patches = read[0, : anatomy.prefix], read[0, anatomy.prefix :]
        if patches.all() or not patches.any():
            single = tuple(front.nonzero().squeeze(-1).tolist())
            anatomy.readout = Readout("fixed", single, bool(patches.all()), anatomy.prefix)
            return None
    return _unknown_readout(read)


def _tokens_read(anatomy: Anatomy, seen: Observation) -> Tensor | None:
    """The tokens of the last stream with a gradient from the logits (b t)."""
    assert seen.logits is not None
    final = seen.stream[str(len(anatomy.blocks))]
    if not (final.requires_grad and seen.logits.requires_grad):
        return None
    return read_tokens(seen.logits, final)


def _unknown_readout(read: Tensor | None) -> str:
    if read is None:
        return "no gradient reaches its last block"
    return (
        f"its prediction is read from {int(read.sum())} of {read.numel()} tokens, in no known way"
    )


def read_tokens(scores: Tensor, final: Tensor) -> Tensor:
    """Which tokens of the last stream a score depends on (b t)."""
    weights = torch.linspace(0.5, 1.5, scores.shape[-1], device=scores.device, dtype=scores.dtype)
    (gradient,) = torch.autograd.grad((scores * weights).sum(), final, retain_graph=True)
    return (gradient != 0).any(dim=-1)


def _is_patchify(module: nn.Module) -> bool:
    """A convolution that cuts an image into patches: its stride is its kernel."""
    return isinstance(module, nn.Conv2d) and module.kernel_size == module.stride != (1, 1)


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower() and not list(module.children())

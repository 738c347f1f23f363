"""Any torch module, opened up from outside: places, recording, dropped tokens, all restored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from pellucid._errors import ArgumentError, ModelError, explain_error
from pellucid._needs import Needs
from pellucid._target import Target
from pellucid._types import Batch, Picture, Text
from pellucid.adapters.anatomy import Anatomy, examine
from pellucid.adapters.base import Adapter, Kind, Task
from pellucid.adapters.image import ImageReader, patch_segments
from pellucid.adapters.text import TextReader
from pellucid.record.attention import Attention, AttentionWatch
from pellucid.record.places import Place, edited, recorded, replaced
from pellucid.record.trace import Recorded


@dataclass(frozen=True)
class Hints:
    """What a user may say of a module that cannot be discovered."""

    blocks: tuple[nn.Module, ...] | None = None
    word_embedding: nn.Module | None = None
    prefix: int | None = None
    grid: tuple[int, int] | None = None


Call = Callable[[nn.Module, Mapping[str, Tensor]], Any]


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


class TorchAdapter(Adapter):
    """A torch module with its reader. The module is never changed; hooks live in `with` blocks."""

    def __init__(
        self,
        module: nn.Module,
        reader: TextReader | ImageReader,
        *,
        name: str,
        task: Task,
        labels: Sequence[str],
        call: Call = call_by_name,
        hints: Hints | None = None,
    ) -> None:
        self.module = module
        self.reader = reader
        self.name = name
        self.task = task
        self.labels = tuple(labels)
        self.kind: Kind = "text" if isinstance(reader, TextReader) else "image"
        self.longest = reader.longest if isinstance(reader, TextReader) else None
        self.largest_batch = 1 if isinstance(reader, TextReader) and reader.pad_id is None else None
        self._call = call
        self._hints = hints or Hints()
        self._hashed: tuple[object, str] | None = None

    def __repr__(self) -> str:
        return f"<pellucid model {self.name}: {self.task} of {self.kind}s>"

    # ---- what it is --------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        first = self._word_embedding if self.kind == "text" else self.module
        found = next((p.device for p in first.parameters()), torch.device("cpu"))
        return torch.device("cpu") if found.type == "meta" else found  # accelerate moves it on

    @property
    def dtype(self) -> torch.dtype:
        found = (p.dtype for p in self.module.parameters() if p.is_floating_point())
        return next(found, torch.get_default_dtype())

    @cached_property
    def anatomy(self) -> Anatomy:
        """What the model is made of, found on a small probe at first use."""
        self.check_state()
        found = examine(
            self.module,
            lambda batch: logits_of(self._call(self.module, batch.inputs)),
            self._probe(),
            blocks=self._hints.blocks,
            input_place=self._place("input") if self.kind == "text" else None,
            prefix=self._hints.prefix,
        )
        found.grant(Needs.TOKEN_DROP, self._drop_problem(found))
        if self.task == "other" and Needs.STREAM in found.offers:
            found.grant(Needs.READOUT, None)  # the user's function decides what is read
        return found

    @cached_property
    def offers(self) -> Needs:
        return self.anatomy.offers

    def missing(self, flag: Needs) -> str:
        return self.anatomy.missing.get(flag, "not offered")

    def check_state(self) -> None:
        if self.module.training:
            raise ModelError(
                explain_error(
                    "the model is in training mode: dropout would make every answer random",
                    got=f"{self.name}.training == True",
                    expected="a model in evaluation mode",
                    instead="model.eval()",
                )
            )
        compiled = type(self.module).__name__ == "OptimizedModule"
        if compiled or getattr(self.module, "_compiled_call_impl", None) is not None:
            raise ModelError(
                explain_error(
                    "a compiled model cannot be observed from outside",
                    got=f"{self.name}, compiled",
                    expected="the model as it was before torch.compile",
                    instead="pellucid.adapt(model._orig_mod, processor)"
                    if compiled
                    else "explain a copy of the model on which .compile() was not called",
                )
            )

    def weights_hash(self) -> str:
        """SHA-256 over names, shapes, types and bytes of all weights; computed once.

        "partial" says that some weights lie on disk, where only their shapes are seen.
        """
        state = list(self.module.state_dict(keep_vars=True).items())
        version = tuple((id(t), t._version, t.device, t.dtype) for _, t in state)
        if self._hashed is not None and self._hashed[0] == version:
            return self._hashed[1]
        digest = hashlib.sha256()
        offloaded = any(tensor.is_meta for _, tensor in state)
        for name, tensor in state:
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            if not tensor.is_meta:
                raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
                digest.update(memoryview(raw.numpy()))
        self._hashed = (version, "partial " * offloaded + digest.hexdigest())
        return self._hashed[1]

    # ---- encoding ----------------------------------------------------------------------------

    def encode(self, raw: Sequence[Any], target: Target, **options: Any) -> Batch:
        if isinstance(self.reader, TextReader):
            return self.reader.encode(
                raw, self.device, continuation=target.text, mask=target.mask, **options
            )
        return self._as_patches(self.reader.encode(raw, self.device, self.dtype))

    def encode_items(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        if isinstance(self.reader, TextReader):
            texts = [item for item in items if isinstance(item, Text)]
            raw = [text.parts if len(text.parts) > 1 else text.parts[0] for text in texts]
            return self.encode(raw, target, long="truncate")
        pictures = [item for item in items if isinstance(item, Picture)]
        return self._as_patches(self.reader.batch(pictures, self.device, self.dtype))

    def padded_on(self, side: Literal["left", "right"]) -> TorchAdapter:
        """The same model with texts padded on this side, if it then predicts what it did before.

        Padding is on the right unless asked otherwise, because every model is right there. Whether
        positions must be passed for the left side is found by trying.
        """
        assert isinstance(self.reader, TextReader)
        probe = self._text_probe(self.reader)
        with torch.no_grad():
            expected = self.rows(self.output(probe), probe)
        for start in (None, 0):
            reader = replace(self.reader, padding_side=side, position_start=start)
            found = TorchAdapter(
                self.module,
                reader,
                name=self.name,
                task=self.task,
                labels=self.labels,
                call=self._call,
                hints=self._hints,
            )
            padded = found._text_probe(reader)
            with torch.no_grad():
                got = found.rows(found.output(padded), padded)
            if torch.allclose(got, expected, rtol=1e-3, atol=1e-4):
                return found
        raise ModelError(
            explain_error(
                f"this model predicts something else when texts are padded on the {side}",
                got=self.name,
                expected="a model that reads positions from its mask, or takes position_ids",
                instead="leave padding on the right, which is what pellucid does by itself",
            )
        )

    def with_pixels(self, batch: Batch, pixels: Tensor) -> Batch:
        """The batch with other normalised pixels in the place of its own."""
        assert isinstance(self.reader, ImageReader)
        return replace(batch, inputs={**batch.inputs, self.reader.argument: pixels})

    def class_index(self, name: int | str, argument: str = "target") -> int:
        if self.task in ("masked", "causal") and isinstance(self.reader, TextReader):
            return name if isinstance(name, int) else self.reader.token_id(name, argument)
        return super().class_index(name, argument)

    def label_name(self, index: int) -> str:
        if self.task in ("masked", "causal") and isinstance(self.reader, TextReader):
            return str(self.reader.tokenizer.decode([index]))
        return super().label_name(index)

    def _as_patches(self, batch: Batch) -> Batch:
        """Give each picture the segments of its patches, where the model has patches."""
        if Needs.TOKENS not in self.offers:
            empty = batch.mask.new_ones(len(batch), 0)
            return replace(batch, mask=empty)
        pictures = [item for item in batch.items if isinstance(item, Picture)]
        height, width = pictures[0].view.shape[:2]
        rows, columns = self._grid(height, width)
        prefix = self._prefix_names(self.anatomy.prefix)
        segments = patch_segments((rows, columns), self._patch(height, width), prefix)
        items = tuple(replace(p, segments=segments, grid=(rows, columns)) for p in pictures)
        mask = batch.mask.new_ones(len(batch), len(segments))
        return replace(batch, items=items, mask=mask)

    def _patch(self, height: int, width: int) -> tuple[int, int]:
        conv = self.anatomy.patchify
        if isinstance(conv, nn.Conv2d):
            return int(conv.kernel_size[0]), int(conv.kernel_size[1])
        rows, columns = self._grid(height, width)
        return height // rows, width // columns

    def _grid(self, height: int, width: int) -> tuple[int, int]:
        conv = self.anatomy.patchify
        if isinstance(conv, nn.Conv2d):
            return height // int(conv.kernel_size[0]), width // int(conv.kernel_size[1])
        assert self._hints.grid is not None
        return self._hints.grid

    def _prefix_names(self, count: int) -> list[str]:
        """Names for the tokens in front of the patches, by the parameters that they come from."""
        names: list[str] = []
        for parameter, tensor in self.module.named_parameters():
            last = parameter.rsplit(".", 1)[-1]
            if last in _PREFIX_PARAMETERS:
                names += [_PREFIX_PARAMETERS[last]] * (tensor.shape[1] if tensor.dim() == 3 else 1)
        return names if len(names) == count else [f"[prefix {i}]" for i in range(count)]

    # ---- running -----------------------------------------------------------------------------

    def output(self, batch: Batch) -> Any:
        with ExitStack() as stack:
            self._drop(batch, stack)
            return self._call(self.module, batch.inputs)

    def output_from(self, batch: Batch, at: str, x: Tensor) -> Any:
        """The output when the state at a place is `x`: "input", "embedding" or "hidden:l"."""
        if at == "input" and isinstance(self.reader, ImageReader):
            return self.output(self.with_pixels(batch, x))
        with replaced(self._place(at), x):
            return self.output(batch)

    def value_at(self, batch: Batch, at: str) -> Tensor:
        """The state of the model at a place (b t d, or b c h w for the pixels of an image)."""
        if at == "input" and isinstance(self.reader, ImageReader):
            return batch.inputs[self.reader.argument].detach()
        if at == "input":
            with torch.no_grad():
                embedded: Tensor = self._word_embedding(batch.inputs["input_ids"])
            return embedded.detach()
        with torch.no_grad(), recorded({at: self._place(at)}) as seen:
            self.output(batch)
        return seen[at].detach()

    def record(
        self, batch: Batch, what: Needs, *, differentiable: bool
    ) -> tuple[Any, dict[Recorded, list[Tensor]]]:
        """The output, and what was asked for, layer by layer."""
        attention: list[Attention] = []
        places = self._recording_places(what)
        with ExitStack() as stack:
            stack.enter_context(torch.set_grad_enabled(differentiable))
            if differentiable:
                stack.enter_context(edited(self.anatomy.embedding, _as_leaf))
            seen = stack.enter_context(recorded(places))
            if what & (Needs.ATTENTION | Needs.VALUES):
                stack.enter_context(AttentionWatch(attention.append))
            output = self.output(batch)
        layers: dict[Recorded, list[Tensor]] = {}
        if Needs.ATTENTION in what:
            layers["attention"] = [found.probabilities for found in attention]
        if Needs.VALUES in what:
            layers["values"] = [found.values for found in attention if found.values is not None]
        if what & (Needs.STREAM | Needs.BRANCHES):
            layers["stream"] = [seen[str(i)] for i in range(len(self.anatomy.blocks) + 1)]
        if Needs.BRANCHES in what:
            layers["attention_branch"], layers["mlp_branch"] = self._branches(seen)
        return output, layers

    def _recording_places(self, what: Needs) -> dict[str, Place]:
        places: dict[str, Place] = {}
        if what & (Needs.STREAM | Needs.BRANCHES):
            places |= self.anatomy.stream()
        if Needs.BRANCHES in what:
            for i, (first, second) in enumerate(self.anatomy.middles):
                places[f"second {i}"] = second
                if first is not None:
                    places[f"first {i}"] = first
                    places[f"between {i}"] = replace(first, side="output")
        return places

    def _branches(self, seen: Mapping[str, Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """What each branch added to the stream, from the inputs of the normalisations."""
        attention, mlp = [], []
        for i in range(len(self.anatomy.blocks)):
            entering, second = seen[str(i)], seen[f"second {i}"]
            if self.anatomy.pre_norm:
                attention.append(second - entering)
                mlp.append(seen[str(i + 1)] - second)
            else:
                attention.append(seen[f"first {i}"] - entering)
                mlp.append(second - seen[f"between {i}"])
        return attention, mlp

    def rows(self, output: Any, batch: Batch) -> Tensor:
        logits = logits_of(output)
        if batch.reads is None:
            return logits[:, None]  # b 1 c
        reads = batch.reads.to(logits.device)
        return logits.gather(1, reads[..., None].expand(-1, -1, logits.shape[-1]))

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        if isinstance(self.reader, TextReader):
            return self.reader.keep(batch, keep)
        counts = keep.sum(dim=1)
        if counts.min() != counts.max():
            raise ArgumentError(
                explain_error(
                    "images in one batch must keep the same number of tokens",
                    got=f"{counts.tolist()} tokens",
                    expected="one number; group the inputs by it",
                )
            )
        kept = keep.nonzero()[:, 1].view(len(batch), -1)
        items = tuple(
            replace(item, segments=tuple(item.segments[i] for i in row))
            for item, row in zip(batch.items, kept.tolist(), strict=True)
        )
        mask = batch.mask.new_ones(kept.shape)
        return replace(batch, items=items, mask=mask, kept=kept)

    # ---- inside ------------------------------------------------------------------------------

    @property
    def _word_embedding(self) -> nn.Module:
        if self._hints.word_embedding is not None:
            return self._hints.word_embedding
        find = getattr(self.module, "get_input_embeddings", None)
        if find is not None:
            return find()  # type: ignore[no-any-return]  # a Hugging Face accessor without types
        tables = [m for m in self.module.modules() if isinstance(m, nn.Embedding)]
        return max(tables, key=lambda table: table.num_embeddings)

    def _place(self, at: str) -> Place:
        if at == "input":
            return Place(self._word_embedding, "output")
        anatomy = self.anatomy
        if at == "embedding":
            return anatomy.embedding
        kind, _, number = at.partition(":")
        layers = len(anatomy.blocks)
        if kind != "hidden" or not number.isdigit() or int(number) > layers:
            raise ArgumentError(
                explain_error(
                    "there is no such place in this model",
                    got=f"at={at!r}",
                    expected=f"'input', 'embedding', or 'hidden:0' to 'hidden:{layers}'",
                    instead="at='embedding'",
                )
            )
        return (
            anatomy.last if int(number) == layers else Place(anatomy.blocks[int(number)], "input")
        )

    def _drop(self, batch: Batch, stack: ExitStack) -> None:
        """Let only the kept tokens of an image into the first block."""
        if batch.kept is None:
            return
        index = batch.kept[..., None]

        def gather(stream: Tensor) -> Tensor:
            return stream.gather(1, index.to(stream.device).expand(-1, -1, stream.shape[-1]))

        stack.enter_context(edited(self.anatomy.embedding, gather))

    def _probe(self) -> Batch:
        """Two small inputs on which the anatomy is read."""
        if isinstance(self.reader, TextReader):
            return self._text_probe(self.reader)
        height, width = self.reader.preprocessing.view(_grey_image(self.reader)).shape[:2]
        shape = (2, self.reader.preprocessing.channels, height, width)
        generator = torch.Generator().manual_seed(0)
        pixels = torch.rand(1, *shape[1:], generator=generator).expand(shape).clone()
        pixels[1, :, :2, :2] = 1 - pixels[1, :, :2, :2]
        pictures = tuple(Picture(np.zeros((height, width, shape[1]), np.uint8)) for _ in range(2))
        tensor = self.reader.normalise(pixels).to(self.device, self.dtype)
        mask = torch.ones(2, 0, dtype=torch.bool, device=self.device)
        return Batch({self.reader.argument: tensor}, pictures, mask)

    def _text_probe(self, reader: TextReader) -> Batch:
        blank = reader.tokenizer.mask_token if reader.reads == "mask" else "b"
        texts = [f"a {blank} a b a b a", f"a {blank} a b"]
        return reader.encode(texts[: 1 if reader.pad_id is None else 2], self.device)

    def _drop_problem(self, anatomy: Anatomy) -> str | None:
        """Dropping a patch must equal hiding it from all attention, or it is not offered."""
        if self.kind == "text":
            return None
        if Needs.TOKENS not in anatomy.offers or Needs.ATTENTION not in anatomy.offers:
            return anatomy.missing.get(Needs.TOKENS) or anatomy.missing[Needs.ATTENTION]
        probe = self._probe()
        with torch.no_grad(), recorded({"last": anatomy.last, "first": anatomy.embedding}) as seen:
            self._call(self.module, probe.inputs)
            stream = seen["first"]
            stays = torch.ones(stream.shape[:2], dtype=torch.bool, device=stream.device)
            stays[:, anatomy.prefix + 1] = False
            with AttentionWatch(blocked=~stays):
                self._call(self.module, probe.inputs)
            hidden = seen["last"][stays].clone()
            try:
                with replaced(
                    anatomy.embedding, stream[stays].view(len(probe), -1, stream.shape[-1])
                ):
                    self._call(self.module, probe.inputs)
            except (RuntimeError, ValueError, IndexError) as error:
                reason = str(error).splitlines()[0]
                return f"its blocks need every patch in its place ({reason})"
        error_size = (seen["last"].flatten(0, 1) - hidden).abs().max() / hidden.abs().max()
        if not error_size < _tolerance(self.dtype):
            return "leaving a patch out is not the same as not attending to it"
        return None


_PREFIX_PARAMETERS = {
    "cls_token": "[CLS]",
    "class_embedding": "[CLS]",
    "distillation_token": "[DIST]",
    "dist_token": "[DIST]",
    "register_tokens": "[REG]",
    "reg_token": "[REG]",
}


def _as_leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _tolerance(dtype: torch.dtype) -> float:
    return 1e-3 if dtype in (torch.float32, torch.float64) else 5e-2


def _grey_image(reader: ImageReader) -> Any:
    from PIL import Image

    return Image.new("L" if reader.preprocessing.channels == 1 else "RGB", (64, 64), 128)

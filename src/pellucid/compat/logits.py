"""A model as other libraries want it: a torch module from one tensor to the logits."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from pellucid._errors import ArgumentError, UnsupportedCombination, explain_error
from pellucid._inputs import each, gathered
from pellucid._target import Target
from pellucid.adapters import TorchAdapter, as_adapter
from pellucid.compat.tensors import NAMES, Rest, batch_of


class LogitsModule(nn.Module):
    """The user's own module behind one tensor; `module` is that very object, nothing is copied.

    Called with pixels as the model reads them (b c h w), ids (b t) or word embeddings (b t d), it
    returns logits (b c). What a text needs besides follows by position or by name: `attention_mask`
    and `token_type_ids`, as Hugging Face has them, `input_ids` beside embeddings where the model
    looks at ids as well (masked words, positions), and `position_ids`.

    Hooks of other tools belong on parts of `module`, which lends itself for that; their
    `backward()` leaves gradients in parameters that require them, as it always does.
    """

    def __init__(self, adapter: TorchAdapter) -> None:
        super().__init__()
        self.adapter = adapter
        self.module = adapter.module
        self.training = self.module.training

    def forward(
        self,
        x: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        input_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """The logits of each input: of classes, of the masked word, or of the next token."""
        rest = (attention_mask, token_type_ids, input_ids, position_ids)
        batch, state = batch_of(self.adapter, x, rest)
        if state is None:
            output = self.adapter.output(batch)
        else:
            output = self.adapter.output_from(batch, "input", state)
        return self.adapter.rows(output, batch)[:, 0]

    def __repr__(self) -> str:
        return f"LogitsModule({self.adapter!r})"


def logits_module(model: Any) -> LogitsModule:
    """The model as a plain torch module for Captum, Quantus, CAM tools and the like.

    Give them tensors of `pellucid.compat.encoded`, or of the model's own processor.
    """
    adapter = torch_adapter(model)
    _ = adapter.offers  # examined now, so that no probe runs through hooks that others put later
    return LogitsModule(adapter)


def encoded(model: Any, inputs: Any, *, at: str = "input") -> tuple[Tensor, Rest]:
    """The tensor that a `logits_module` takes for these inputs, and what goes with it.

    `at` is "input" for pixels or word embeddings, or "ids" for the ids of texts. The second value
    is what Captum calls ``additional_forward_args``: padded texts need it.
    """
    adapter = torch_adapter(model)
    if at not in ("input", "ids") or (at == "ids" and adapter.kind == "image"):
        raise ArgumentError(
            explain_error(
                f"a model of {adapter.kind}s is not given this",
                got=f"at={at!r}",
                expected="'input'" if adapter.kind == "image" else "'input' or 'ids'",
                instead="at='input'",
            )
        )
    target = Target.predicted()
    items = each(gathered(inputs)[0], lambda one: adapter.read(one, target))
    batch = adapter.batch(items, target)
    if adapter.kind == "image":
        return batch.inputs[cast(Any, adapter).reader.argument], ()
    known = {"attention_mask": batch.mask.long(), **batch.inputs}
    x = batch.inputs["input_ids"] if at == "ids" else adapter.value_at(batch, "input")
    return x, tuple(known.get(name) for name in NAMES)


def torch_adapter(model: Any) -> TorchAdapter:
    """The model, which must be one that torch can run: a black box has no tensors inside."""
    found = model.adapter if isinstance(model, LogitsModule) else as_adapter(model)
    if not isinstance(found, TorchAdapter):
        raise UnsupportedCombination(
            explain_error(
                "other libraries' tools need a torch module",
                got=f"{found.name}, a black box",
                expected="a model of torch",
                instead="pellucid.load(...) or pellucid.adapt(module, processor)",
            )
        )
    return found

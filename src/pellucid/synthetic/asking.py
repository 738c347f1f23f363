"""A model as a function from sequences of words to log-odds, which surrogates are fitted to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from pellucid._arguments import integer
from pellucid._errors import InputError, ModelError, explain_error
from pellucid._target import Target
from pellucid._types import Text
from pellucid.adapters import as_adapter
from pellucid.adapters.text_model import TextModel
from pellucid.surrogates.counts import Unit

Ask = Callable[[Sequence[Sequence[Unit]]], Tensor]


def asking(model: Any, *, batch_size: int = 500) -> Ask:
    """What answers sequences of words with log p(y = 1) / p(y = 0), in float64.

    Words are joined by spaces and read by the model's own tokenizer, with the special tokens that
    it adds; sequences of similar length share a batch. `Slalom.recover` takes it as it is.
    """
    adapter = _of_two_classes(model)
    integer("batch_size", batch_size, 1, 500)

    @torch.no_grad()
    def ask(sequences: Sequence[Sequence[Unit]]) -> Tensor:
        adapter.check_state()
        rows = _read(adapter, sequences)
        found = torch.empty(len(rows), dtype=torch.float64)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for start in range(0, len(order), batch_size):
            some = order[start : start + batch_size]
            texts = [Text(("",), (), rows={"input_ids": rows[i]}) for i in some]
            batch = adapter.batch(texts, Target())
            logits = adapter.rows(adapter.output(batch), batch)[:, 0].double()  # b c
            found[some] = (logits[:, 1] - logits[:, 0]).cpu()
        return found

    return ask


def _of_two_classes(model: Any) -> TextModel:
    adapter = as_adapter(model)
    classifies = isinstance(adapter, TextModel) and adapter.task == "classification"
    if classifies and len(adapter.labels) == 2:
        return cast(TextModel, adapter)
    raise ModelError(
        explain_error(
            "log-odds are those of two classes of a text",
            got=f"{adapter.name}: {adapter.task} of {adapter.kind}s, {len(adapter.labels)} classes",
            expected="a classifier of texts with two classes",
            instead="model = pellucid.synthetic.train('bert', data=data)",
        )
    )


def _read(adapter: TextModel, sequences: Sequence[Sequence[Unit]]) -> list[tuple[int, ...]]:
    """The ids that the model's tokenizer makes of the sequences, every word known to it."""
    tokenizer = adapter.reader.tokenizer
    texts = [" ".join(map(str, sequence)) for sequence in sequences]
    rows = tokenizer(texts, verbose=False)["input_ids"] if texts else []
    longest = adapter.reader.longest
    for text, row in zip(texts, rows, strict=True):
        if not row or tokenizer.unk_token_id in row or len(row) > longest:
            raise InputError(
                explain_error(
                    "the model cannot read this sequence",
                    got=f"{text!r}, which is {len(row)} tokens",
                    expected=f"1 to {longest} tokens, all of them in its vocabulary",
                    instead="ask(data.sequences), for the data that the model was trained on",
                )
            )
    return [tuple(row) for row in rows]

"""A torch module that reads texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid._errors import InputError, ModelError, explain_error
from pellucid._target import Target
from pellucid._types import Batch, Picture, Removal, Text
from pellucid.adapters.anatomy import Anatomy
from pellucid.adapters.text import TextReader
from pellucid.adapters.torch_model import TorchAdapter
from pellucid.record.places import Place

_TYPES = (
    4  # of tokens, where the model does not say how many it knows: two texts, [CLS] and padding
)


class TextModel(TorchAdapter):
    """Its input is a row of ids, and the state that can be varied is their word embeddings."""

    kind = "text"

    def __init__(self, module: nn.Module, reader: TextReader, **options: Any) -> None:
        super().__init__(module, **options)
        self.reader = reader
        self.longest = reader.longest
        self.largest_batch = 1 if reader.pad_id is None else None

    @property
    def device(self) -> torch.device:
        found = next(self._word_embedding.parameters()).device
        return torch.device("cpu") if found.type == "meta" else found  # accelerate moves it on

    def read(self, raw: Any, target: Target, **options: Any) -> Text:
        return self.reader.read(raw, continuation=target.text, **options)

    def batch(self, items: Sequence[Text | Picture], target: Target) -> Batch:
        texts = [item for item in items if isinstance(item, Text)]
        read = [text if text.rows is not None else self._read_again(text, target) for text in texts]
        for text in read:
            self._check_rows(text.rows or {})
        return self.reader.collate(read, self.device, mask=target.mask)

    def _read_again(self, text: Text, target: Target) -> Text:
        """A text that comes from a file, where only its parts were kept."""
        return self.read(
            text.parts if len(text.parts) > 1 else text.parts[0], target, long="truncate"
        )

    def _check_rows(self, rows: Mapping[str, tuple[int, ...]]) -> None:
        """Rows of a file may be anything; the model would read beyond its tables, or be steered."""
        types = getattr(getattr(self.module, "config", None), "type_vocab_size", None)
        tables = {"input_ids": next(self._word_embedding.parameters()).shape[0]}
        for name, row in rows.items():
            size = tables.get(name, types if isinstance(types, int) else _TYPES)
            known = name in ("input_ids", *self.reader.tokenizer.model_input_names)
            if not known or not all(0 <= number < size for number in row):
                raise InputError(
                    explain_error(
                        "this text was not read by this model",
                        got=f"{name} from {min(row)} to {max(row)}",
                        expected=f"what its tokenizer makes: input_ids below {tables['input_ids']}",
                        instead="explain the input again, with this model",
                    )
                )

    def value_at(self, batch: Batch, at: str) -> Tensor:
        if at != "input":
            return super().value_at(batch, at)
        with torch.no_grad():
            embedded: Tensor = self._word_embedding(batch.inputs["input_ids"])
        return embedded.detach()

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        return self.reader.keep(batch, keep)

    def without(self, batch: Batch, keep: Tensor, by: Removal) -> Batch:
        return self.keep(batch, keep) if by == "delete" else self.reader.replaced(batch, keep, by)

    def class_index(self, name: int | str, argument: str = "target") -> int:
        if self.task not in ("masked", "causal"):
            return super().class_index(name, argument)
        return self.reader.token_id(name, argument) if isinstance(name, str) else name

    def label_name(self, index: int) -> str:
        if self.task in ("masked", "causal"):
            return str(self.reader.tokenizer.decode([index]))
        return super().label_name(index)

    def padded_on(self, side: Literal["left", "right"]) -> TextModel:
        """The same model with texts padded on this side, if it then predicts what it did before.

        Padding is on the right unless asked otherwise, because every model is right there. Whether
        positions must be passed for the left side is found by trying.
        """
        probe = self._probe()
        with torch.no_grad():
            expected = self.rows(self.output(probe), probe)
        for start in (None, 0):
            reader = replace(self.reader, padding_side=side, position_start=start)
            found = TextModel(
                self.module,
                reader,
                name=self.name,
                task=self.task,
                labels=self.labels,
                call=self._call,
                hints=self._hints,
            )
            padded = found._probe()
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

    @property
    def vocabulary(self) -> int:
        """How many tokens have both a name and a vector."""
        vectors = next(self._word_embedding.parameters()).shape[0]
        return min(len(self.reader.tokenizer), int(vectors))

    @property
    def _word_embedding(self) -> nn.Module:
        if self._hints.word_embedding is not None:
            return self._hints.word_embedding
        find = getattr(self.module, "get_input_embeddings", None)
        if find is not None:
            return find()  # type: ignore[no-any-return]  # a Hugging Face accessor without types
        tables = [m for m in self.module.modules() if isinstance(m, nn.Embedding)]
        if not tables:
            raise ModelError(
                explain_error(
                    "this model has no table of word embeddings",
                    got=self.name,
                    expected="an nn.Embedding that turns ids into vectors",
                    instead="pellucid.adapt(module, tokenizer, word_embedding=module.table, ...)",
                )
            )
        return max(tables, key=lambda table: table.num_embeddings)

    @property
    def _input_place(self) -> Place:
        return Place(self._word_embedding, "output")

    def _probe(self) -> Batch:
        blank = self.reader.tokenizer.mask_token if self.reader.reads == "mask" else "b"
        texts = [f"a {blank} a b a b a", f"a {blank} a b"]
        read = [self.reader.read(text) for text in texts[: self.largest_batch]]
        return self.reader.collate(read, self.device)

    def _drop_problem(self, anatomy: Anatomy) -> str | None:
        return None  # the ids are simply left out

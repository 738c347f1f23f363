"""From texts to the ids that a language model reads, remembering where every token came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._types import Batch, Segment, Text
from pellucid._words import align

LongText = Literal["refuse", "truncate", "windows"]
Reads = Literal["none", "mask", "last"]  # where per-token logits are read


@dataclass(frozen=True)
class Encoded:
    """One text as rows of integers, before padding."""

    rows: Mapping[str, list[int]]  # input_ids and whatever runs beside them
    text: Text


@dataclass(frozen=True)
class TextReader:
    """Encodes texts for one model; padding is ours, so that it is right for every model."""

    tokenizer: Any
    accepts: frozenset[str]  # argument names of the model's forward
    longest: int  # tokens, special ones included
    pad_id: int | None  # None: the model cannot tell padding from text; one text at a time
    reads: Reads = "none"
    padding_side: Literal["left", "right"] = "right"
    position_start: int | None = None  # given: position ids are passed, counted from here

    # ---- encoding ----------------------------------------------------------------------------

    def encode(
        self,
        raw: Sequence[Any],
        device: torch.device,
        *,
        long: LongText = "refuse",
        continuation: str | None = None,
        mask: int = 0,
    ) -> Batch:
        """Texts (or pairs of texts) as one padded batch."""
        rows = [self._encode_one(one, long, continuation) for one in raw]
        return self.collate(rows, device, mask=mask)

    def collate(self, rows: Sequence[Encoded], device: torch.device, *, mask: int = 0) -> Batch:
        """Pad rows to one length; `mask` says which [MASK] of a masked language model is read."""
        lengths = [len(row.text.segments) for row in rows]
        longest = max(lengths)
        if self.pad_id is None and len(rows) > 1:
            raise InputError(
                explain_error(
                    "this model takes one text at a time",
                    got=f"{len(rows)} texts, and no padding token in the model's config",
                    expected="config.pad_token_id, by which it finds where a text ends",
                    instead="model.config.pad_token_id = tokenizer.eos_token_id, or batch_size=1",
                )
            )
        real = torch.zeros(len(rows), longest, dtype=torch.bool)
        for line, length in zip(real, lengths, strict=True):
            line[self._place(longest, length)] = True
        inputs = {
            name: self._padded([row.rows[name] for row in rows], real, name)
            for name in rows[0].rows
        }
        if "attention_mask" in self.accepts:
            inputs["attention_mask"] = real.long()
        if self.position_start is not None and "position_ids" in self.accepts:
            counted = real.long().cumsum(dim=-1) - 1
            inputs["position_ids"] = (counted + self.position_start).clamp(min=0)
        return Batch(
            inputs={name: tensor.to(device) for name, tensor in inputs.items()},
            items=tuple(row.text for row in rows),
            mask=real.to(device),
            reads=self._read_positions(rows, real, mask, device),
        )

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        """The batch with only the tokens where `keep` is true: shorter, positions re-packed."""
        beside = [name for name in batch.inputs if name not in ("attention_mask", "position_ids")]
        rows = []
        for index, item in enumerate(batch.items):
            assert isinstance(item, Text)
            stays = keep[index] & batch.mask[index]
            kept = {name: batch.inputs[name][index][stays].tolist() for name in beside}
            flags = stays[batch.mask[index]].tolist()
            segments = (s for s, flag in zip(item.segments, flags, strict=True) if flag)
            rows.append(Encoded(kept, replace(item, segments=tuple(segments))))
        return self.collate(rows, batch.mask.device)

    def token_id(self, text: str, argument: str = "target") -> int:
        """The one token that this text is."""
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        if len(ids) != 1:
            pieces = self.tokenizer.convert_ids_to_tokens(ids)
            raise ArgumentError(
                explain_error(
                    f"{text!r} is not one token of this model",
                    got=f"{argument}={text!r}, which is {len(ids)} tokens: {pieces}",
                    expected="a single token (a leading space often belongs to it)",
                    instead=f"pellucid.Target.continuation({text!r}) for a causal model",
                )
            )
        return int(ids[0])

    # ---- one text ----------------------------------------------------------------------------

    def _encode_one(self, raw: Any, long: LongText, continuation: str | None) -> Encoded:
        parts = text_parts(raw)
        extra = [] if continuation is None else self._continuation_ids(continuation)
        room = self.longest - len(extra)
        plain = self._tokenise(parts)
        length = len(plain["input_ids"])
        notes: tuple[str, ...] = ()
        if length > room and long == "refuse":
            raise self._too_long(length, room)
        if length > room and long == "truncate":
            plain = self._tokenise(parts, truncation=True, max_length=room)
            notes = (f"truncated: {len(plain['input_ids'])} of {length} tokens were read",)
        segments = self._segments(parts, plain)
        if all(segment.role != "content" for segment in segments):
            raise InputError(
                explain_error(
                    "this text has no token of its own",
                    got=repr(parts[0]),
                    expected="a text of at least one word that the tokenizer knows how to split",
                )
            )
        decoded = [self.tokenizer.decode([token]) for token in extra]
        rows: dict[str, list[int]] = {
            name: list(plain[name]) + (extra if name == "input_ids" else [0] * len(extra))
            for name in ("input_ids", "token_type_ids")
            if name in plain and (name == "input_ids" or name in self.accepts)
        }
        added = tuple(Segment(piece, role="continuation") for piece in decoded)
        return Encoded(rows, Text(parts, segments + added, notes))

    def _tokenise(self, parts: tuple[str, ...], **options: Any) -> Mapping[str, Any]:
        fast = bool(getattr(self.tokenizer, "is_fast", False))
        found: Mapping[str, Any] = self.tokenizer(
            *parts,
            return_offsets_mapping=fast,
            return_special_tokens_mask=True,
            verbose=False,
            **options,
        )
        return found

    def _segments(self, parts: tuple[str, ...], encoded: Mapping[str, Any]) -> tuple[Segment, ...]:
        """Where each token stands in the text, and which tokens are the model's own."""
        ids: list[int] = encoded["input_ids"]
        masked = self.tokenizer.mask_token_id if self.reads == "mask" else None
        special = [
            bool(flag) or token == masked
            for flag, token in zip(encoded["special_tokens_mask"], ids, strict=True)
        ]
        owners = self._owners(encoded, special)
        pieces = [self.tokenizer.decode([token]) for token in ids]
        offsets = encoded.get("offset_mapping")
        spans: list[tuple[int, int] | None] = [None] * len(ids)
        for part, text in enumerate(parts):
            inside = [i for i in range(len(ids)) if not special[i] and owners[i] == part]
            found = [tuple(offsets[i]) for i in inside] if offsets else []
            if not _plausible(text, found, [pieces[i] for i in inside]):
                found = align(text, [pieces[i] for i in inside])
            for i, (start, end) in zip(inside, found, strict=True):
                spans[i] = _without_spaces(text, start, end)
        return tuple(
            Segment(
                pieces[i] if span is None else parts[owners[i]][slice(*span)] or pieces[i],
                role="special" if special[i] else "content",
                span=span,
                part=owners[i],
            )
            for i, span in enumerate(spans)
        )

    def _owners(self, encoded: Mapping[str, Any], special: list[bool]) -> list[int]:
        """Which text of a pair each token belongs to."""
        sequence_ids = getattr(encoded, "sequence_ids", None)
        if sequence_ids is not None and getattr(self.tokenizer, "is_fast", False):
            return [owner or 0 for owner in sequence_ids(0)]
        kinds = encoded.get("token_type_ids")
        return list(kinds) if kinds else [0] * len(special)

    def _continuation_ids(self, continuation: str) -> list[int]:
        if self.reads != "last":
            raise ArgumentError(
                explain_error(
                    "only a causal language model continues a text",
                    got=f"Target.continuation({continuation!r})",
                    expected="a model for text generation",
                    instead="target=None explains the model's prediction",
                )
            )
        ids = self.tokenizer.encode(continuation, add_special_tokens=False)
        if not ids:
            raise ArgumentError(
                explain_error(
                    "the continuation is empty",
                    got=f"Target.continuation({continuation!r})",
                    expected="at least one token",
                )
            )
        return [int(token) for token in ids]

    # ---- padding and reading -----------------------------------------------------------------

    def _place(self, longest: int, length: int) -> slice:
        return slice(longest - length, None) if self.padding_side == "left" else slice(length)

    def _padded(self, rows: Sequence[list[int]], real: Tensor, name: str) -> Tensor:
        fill = (self.pad_id or 0) if name == "input_ids" else 0
        out = torch.full(real.shape, fill, dtype=torch.long)
        for line, mask, row in zip(out, real, rows, strict=True):
            line[mask] = torch.tensor(row)
        return out

    def _read_positions(
        self, rows: Sequence[Encoded], real: Tensor, mask: int, device: torch.device
    ) -> Tensor | None:
        """The positions whose logits are the prediction (b k)."""
        if self.reads == "none":
            return None
        found = []
        for row, line in zip(rows, real, strict=True):
            positions = line.nonzero().squeeze(-1).tolist()
            local = self._last(row) if self.reads == "last" else [self._masked(row, mask)]
            found.append([positions[i] for i in local])
        return torch.tensor(found, device=device)

    def _last(self, row: Encoded) -> list[int]:
        """The token before each token of the continuation, or just the last token."""
        extra = sum(segment.role == "continuation" for segment in row.text.segments)
        end = len(row.text.segments)
        return list(range(end - extra - 1, end - 1)) if extra else [end - 1]

    def _masked(self, row: Encoded, mask: int) -> int:
        token = self.tokenizer.mask_token_id
        found = [i for i, value in enumerate(row.rows["input_ids"]) if value == token]
        if not -len(found) <= mask < len(found):
            word = self.tokenizer.mask_token
            raise InputError(
                explain_error(
                    "a masked language model needs a masked word to predict",
                    got=f"{len(found)} of {word!r} in the text, and mask={mask}",
                    expected=f"a text with {word} in it",
                    instead=f"pellucid.explain(model, 'The film was {word}.')",
                )
            )
        return found[mask]

    def _too_long(self, length: int, room: int) -> InputError:
        return InputError(
            explain_error(
                "this text is longer than the model can read",
                got=f"{length} tokens",
                expected=f"at most {room}",
                instead="long='truncate' reads the beginning; long='windows' explains overlapping "
                "pieces and merges them by words",
            )
        )


def text_parts(raw: Any) -> tuple[str, ...]:
    """One text or a pair, checked: ("a text",) or ("first", "second")."""
    parts = raw if isinstance(raw, tuple) else (raw,)
    if len(parts) > 2 or not all(isinstance(part, str) for part in parts):
        raise InputError(
            explain_error(
                "this is not a text",
                got=repr(raw)[:80] if not isinstance(raw, str) else raw,
                expected="a string, or a tuple of two strings for a pair",
                instead="pellucid.explain(model, 'a fine film')",
            )
        )
    for part in parts:
        if not part.strip():
            raise InputError(
                explain_error(
                    "there is nothing to explain in an empty text",
                    got=repr(part),
                    expected="a text of at least one word",
                )
            )
    return parts


def _plausible(text: str, spans: Sequence[tuple[int, ...]], pieces: Sequence[str]) -> bool:
    """Whether a tokenizer's offsets can be believed: inside the text, and not empty throughout."""
    if len(spans) != len(pieces):
        return False
    inside = all(0 <= start <= end <= len(text) for start, end in spans)
    written = [span for span, piece in zip(spans, pieces, strict=True) if piece.strip()]
    return inside and (not written or any(end > start for start, end in written))


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space that some tokenizers count into it."""
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return start, end
    start += len(piece) - len(piece.lstrip())
    return start, start + len(stripped)

"""From texts to the ids that a language model reads, remembering where every token came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal

import torch
from torch import Tensor

from pellucid._errors import ArgumentError, InputError, explain_error
from pellucid._types import Batch, Removal, Segment, Text
from pellucid._words import align, word_spans

LongText = Literal["refuse", "truncate", "windows"]
Reads = Literal["none", "mask", "last"]  # where per-token logits are read


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

    # ---- many texts --------------------------------------------------------------------------

    def collate(self, texts: Sequence[Text], device: torch.device, *, mask: int = 0) -> Batch:
        """Pad texts to one length; `mask` says which [MASK] of a masked language model is read."""
        lines = [self._rows(text) for text in texts]
        self._check_padding([len(line["input_ids"]) for line in lines])
        real = self._real([len(line["input_ids"]) for line in lines])
        return self._batch(texts, lines, real, self._reads(texts, lines, mask), device)

    def keep(self, batch: Batch, keep: Tensor) -> Batch:
        """The batch with only the tokens where `keep` is true: shorter, positions re-packed."""
        mask = batch.mask.cpu()
        stays = keep.cpu() & mask
        texts, lines = [], []
        reads: list[list[int]] = []
        for row, item in enumerate(batch.items):
            assert isinstance(item, Text)
            flags = stays[row][mask[row]]
            texts.append(self._begun(_kept(item, flags.tolist())))
            lines.append(self._rows(texts[-1]))
            if self.reads == "last":
                reads.append(_last(texts[-1]))
            elif batch.reads is not None:
                start = int(mask[row].long().argmax())
                reads.append(_moved((batch.reads[row].cpu() - start).tolist(), flags))
        real = self._real([len(line["input_ids"]) for line in lines])
        return self._batch(texts, lines, real, reads, batch.mask.device)

    def _begun(self, text: Text) -> Text:
        """The text; where nothing is left of it, the token that begins or ends texts, alone."""
        if any(segment.role != "continuation" for segment in text.segments):
            return text
        tokenizer = self.tokenizer
        known = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        start = next((token for token in known if token is not None), None)
        if start is None:
            raise InputError(
                explain_error(
                    "nothing is left of the text",
                    got="every token dropped, and the model adds none of its own",
                    expected="at least one token that stays, or a tokenizer with a token that "
                    "begins or ends a text",
                    instead="keep at least one token",
                )
            )
        assert text.rows is not None
        own = {name: start if name == "input_ids" else 0 for name in text.rows}
        return replace(
            text,
            segments=(Segment(tokenizer.decode([start]), role="special"), *text.segments),
            rows={name: (own[name], *row) for name, row in text.rows.items()},
        )

    def replaced(self, batch: Batch, keep: Tensor, by: Removal) -> Batch:
        """The batch with this token of the tokenizer wherever `keep` is false."""
        token = getattr(self.tokenizer, f"{by}_token_id", None)
        if token is None:
            raise ArgumentError(
                explain_error(
                    f"this tokenizer has no {by} token to put in the place of another",
                    got=f"by={by!r}",
                    expected="a token that the tokenizer has, or 'delete'",
                    instead="by='delete'",
                )
            )
        ids = batch.inputs["input_ids"]
        blank = batch.mask & ~keep.to(batch.mask.device)
        return replace(
            batch,
            inputs={**batch.inputs, "input_ids": ids.masked_fill(blank.to(ids.device), token)},
        )

    def _batch(
        self,
        texts: Sequence[Text],
        lines: Sequence[Mapping[str, tuple[int, ...]]],
        real: Tensor,
        reads: Sequence[Sequence[int]],
        device: torch.device,
    ) -> Batch:
        """Padded tensors of these rows; `reads` are positions within each text."""
        inputs = {
            name: self._padded([line[name] for line in lines], real, name) for name in lines[0]
        }
        if "attention_mask" in self.accepts:
            inputs["attention_mask"] = real.long()
        if self.position_start is not None and "position_ids" in self.accepts:
            counted = real.long().cumsum(dim=-1) - 1
            inputs["position_ids"] = (counted + self.position_start).clamp(min=0)
        starts = real.long().argmax(dim=1, keepdim=True)
        return Batch(
            inputs={name: tensor.to(device) for name, tensor in inputs.items()},
            items=tuple(texts),
            mask=real.to(device),
            reads=(torch.tensor(reads) + starts).to(device) if self.reads != "none" else None,
        )

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
        if ids[0] == self.tokenizer.unk_token_id and text != self.tokenizer.unk_token:
            raise ArgumentError(
                explain_error(
                    f"{text!r} is not in the vocabulary of this model",
                    got=f"{argument}={text!r}",
                    expected="a token that the tokenizer knows",
                    instead=f"{argument}={self.tokenizer.unk_token!r} for the unknown token itself",
                )
            )
        return int(ids[0])

    # ---- one text ----------------------------------------------------------------------------

    def read(self, raw: Any, *, long: LongText = "refuse", continuation: str | None = None) -> Text:
        """A text (or a pair of texts) as the tokens that the model reads."""
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
                    instead="pellucid.explain(model, 'a fine film')",
                )
            )
        rows: dict[str, tuple[int, ...]] = {
            name: (*plain[name], *(extra if name == "input_ids" else [0] * len(extra)))
            for name in ("input_ids", "token_type_ids")
            if name in plain and (name == "input_ids" or name in self.accepts)
        }
        decoded = (self.tokenizer.decode([token]) for token in extra)
        added = tuple(Segment(piece, role="continuation") for piece in decoded)
        return Text(parts, segments + added, notes, rows)

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
        owners = self._owners(encoded, special, len(parts))
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

    def _owners(self, encoded: Mapping[str, Any], special: list[bool], parts: int) -> list[int]:
        """Which text of a pair each token belongs to."""
        sequence_ids = getattr(encoded, "sequence_ids", None)
        if sequence_ids is not None and getattr(self.tokenizer, "is_fast", False):
            return [owner or 0 for owner in sequence_ids(0)]
        kinds = encoded.get("token_type_ids")
        if kinds:
            return list(kinds)
        if parts > 1:
            raise InputError(
                explain_error(
                    "this tokenizer does not tell the two texts of a pair apart",
                    got=f"{type(self.tokenizer).__name__}, slow and without token types",
                    expected="a fast tokenizer, or one text",
                    instead="AutoTokenizer.from_pretrained(..., use_fast=True)",
                )
            )
        return [0] * len(special)

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
                    instead="pellucid.Target.continuation(' and so on')",
                )
            )
        return [int(token) for token in ids]

    # ---- padding and reading -----------------------------------------------------------------

    def _rows(self, text: Text) -> Mapping[str, tuple[int, ...]]:
        if text.rows is None:
            raise InputError(
                explain_error(
                    "this text has not been read by a tokenizer",
                    got=repr(text.parts[0][:40]),
                    expected="what TextReader.read returned",
                    instead="model.encode([text], target)",
                )
            )
        return text.rows

    def _check_padding(self, lengths: Sequence[int]) -> None:
        if self.pad_id is None and len(lengths) > 1:
            raise InputError(
                explain_error(
                    "this model takes one text at a time",
                    got=f"{len(lengths)} texts, and no padding token in the model's config",
                    expected="config.pad_token_id, by which it finds where a text ends",
                    instead="model.config.pad_token_id = tokenizer.eos_token_id, or batch_size=1",
                )
            )

    def _real(self, lengths: Sequence[int]) -> Tensor:
        """True where a token is real (b t)."""
        longest = max(lengths)
        count = (
            torch.arange(longest).flip(0) if self.padding_side == "left" else torch.arange(longest)
        )
        return count < torch.tensor(lengths)[:, None]

    def _padded(self, rows: Sequence[Sequence[int]], real: Tensor, name: str) -> Tensor:
        fill = (self.pad_id or 0) if name == "input_ids" else 0
        out = torch.full(real.shape, fill, dtype=torch.long)
        out[real] = torch.tensor([value for row in rows for value in row], dtype=torch.long)
        return out

    def _reads(
        self, texts: Sequence[Text], lines: Sequence[Mapping[str, tuple[int, ...]]], mask: int
    ) -> list[list[int]]:
        """The positions, within each text, whose logits are the prediction."""
        if self.reads == "last":
            return [_last(text) for text in texts]
        if self.reads == "mask":
            return [[self._masked(line["input_ids"], mask)] for line in lines]
        return [[] for _ in texts]

    def _masked(self, ids: Sequence[int], mask: int) -> int:
        token = self.tokenizer.mask_token_id
        found = [i for i, value in enumerate(ids) if value == token]
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


def _last(text: Text) -> list[int]:
    """The token before each token of the continuation, or just the last token."""
    extra = sum(segment.role == "continuation" for segment in text.segments)
    end = len(text.segments)
    return list(range(end - extra - 1, end - 1)) if extra else [end - 1]


def _moved(places: Sequence[int], stays: Tensor) -> list[int]:
    """Where positions are after the tokens that do not stay are gone."""
    if not all(bool(stays[place]) for place in places):
        raise InputError(
            explain_error(
                "the masked word that is read cannot be dropped",
                got=f"keep is False at token {places[0]}",
                expected="the [MASK] to stay",
                instead="keep | ~case.content",
            )
        )
    return [int(stays[:place].sum()) for place in places]


def _kept(text: Text, flags: Sequence[bool]) -> Text:
    """The text with only the flagged tokens."""
    assert text.rows is not None
    return replace(
        text,
        segments=tuple(compress(text.segments, flags)),
        rows={name: tuple(compress(row, flags)) for name, row in text.rows.items()},
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
        if not word_spans(part):
            raise InputError(
                explain_error(
                    "there is nothing to explain in an empty text",
                    got=repr(part),
                    expected="a text of at least one word",
                    instead="pellucid.explain(model, 'a fine film')",
                )
            )
        _check_characters(part)
    return parts


def _check_characters(part: str) -> None:
    try:
        part.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            explain_error(
                "this text holds half of a character",
                got=f"{part[error.start]!r} at {error.start}",
                expected="text that can be written as UTF-8",
                instead="text.encode(errors='replace').decode()",
            )
        ) from None


def _plausible(text: str, spans: Sequence[tuple[int, ...]], pieces: Sequence[str]) -> bool:
    """Whether a tokenizer's offsets can be believed: inside the text, none of them empty."""
    if len(spans) != len(pieces):
        return False
    inside = all(0 <= start <= end <= len(text) for start, end in spans)
    written = [span for span, piece in zip(spans, pieces, strict=True) if piece.strip()]
    return inside and all(end > start for start, end in written)


def _without_spaces(text: str, start: int, end: int) -> tuple[int, int]:
    """A span without the white space that some tokenizers count into it."""
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return start, end
    start += len(piece) - len(piece.lstrip())
    return start, start + len(stripped)

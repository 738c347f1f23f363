"""Which tokens a state may be decoded to: those that a person can read."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import torch
from torch import Tensor

from pellucid.adapters.text_model import TextModel

_UNUSED = re.compile(r"[\[<]unused\d+[\]>]")
_BROKEN = "\ufffd"  # what a part of a character is decoded to


def readable_tokens(adapter: TextModel, *, punctuation: bool) -> Tensor:
    """True for every token that stands for text (v): none of the model's own, no half character.

    Without `punctuation`, marks and symbols alone are left out too.
    """
    tokenizer = adapter.reader.tokenizer
    pieces = tokenizer.batch_decode([[token] for token in range(adapter.vocabulary)])
    own = _special(tokenizer)
    return torch.tensor(
        [
            token not in own and _readable(piece) and (punctuation or not _marks(piece))
            for token, piece in enumerate(pieces)
        ]
    )


def _special(tokenizer: Any) -> set[int]:
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {*tokenizer.all_special_ids, *(i for i, token in added.items() if token.special)}


def _readable(piece: str) -> bool:
    return bool(piece.strip()) and _BROKEN not in piece and not _UNUSED.fullmatch(piece.strip())


def _marks(piece: str) -> bool:
    """Whether a piece is punctuation or symbols and nothing else."""
    bare = piece.strip()
    bare = bare.removeprefix("##") or bare
    return all(unicodedata.category(character)[0] in "PS" for character in bare)

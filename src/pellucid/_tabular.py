"""Explanations as tables: one row a token, word, patch or pixel, or one row an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, get_args

from PIL import Image

from pellucid._errors import ArgumentError, explain_error
from pellucid._results import Explanation
from pellucid._types import Picture, Text

By = Literal["token", "word"]
_PLACES = ("start", "end", "top", "left", "bottom", "right")


def to_pandas(explanation: Explanation, by: By = "token") -> Any:
    """A `pandas.DataFrame` with one row a token or word, or one a patch or pixel."""
    if by not in get_args(By):
        raise ArgumentError(
            explain_error(
                "there are no such rows",
                got=f"by={by!r}",
                expected="'token' or 'word'",
                instead="ex.to_pandas(by='word')",
            )
        )
    rows = _words(explanation) if by == "word" else _rows(explanation)
    table = _library("pandas").DataFrame(rows)
    places = [name for name in _PLACES if name in table.columns]  # none of the model's own tokens
    return table.astype(dict.fromkeys(places, "Int64"))


def to_dataset(explanations: Explanation | Sequence[Explanation]) -> Any:
    """A `datasets.Dataset` with one row an explanation, all of texts or all of images.

    Scores and what they belong to (tokens, roles, words; or the shape of the grid or map) are
    lists beside each other; `value`, `label` and `method` say what was explained, and how.
    """
    found = [explanations] if isinstance(explanations, Explanation) else list(explanations)
    kinds = {one.kind for one in found}
    if len(kinds) != 1:
        raise ArgumentError(
            explain_error(
                "a table has rows of one kind",
                got="no explanations" if not kinds else "explanations of texts and of images",
                expected="explanations of texts, or of images",
                instead="to_dataset([ex for ex in explanations if ex.kind == 'text'])",
            )
        )
    return _library("datasets").Dataset.from_list([_line(one) for one in found])


def _rows(explanation: Explanation) -> list[dict[str, Any]]:
    scores = explanation.scores.tolist()
    if explanation.scores.dim() == 2:
        return [
            {"row": row, "column": column, "score": score}
            for row, line in enumerate(scores)
            for column, score in enumerate(line)
        ]
    place = _place if explanation.kind == "text" else _box
    return [
        {"position": i, "token": segment.text, "role": segment.role, **place(segment), "score": s}
        for i, (segment, s) in enumerate(zip(explanation.segments, scores, strict=True))
    ]


def _place(segment: Any) -> dict[str, Any]:
    start, end = segment.span or (None, None)
    return {"part": segment.part, "start": start, "end": end}


def _box(segment: Any) -> dict[str, Any]:
    names = ("top", "left", "bottom", "right")
    return dict(zip(names, segment.box or (None,) * 4, strict=True))


def _words(explanation: Explanation) -> list[dict[str, Any]]:
    return [
        {
            "word": word.text,
            "part": word.part,
            "start": word.span[0],
            "end": word.span[1],
            "score": word.score,
        }
        for word in explanation.words()
    ]


def _line(explanation: Explanation) -> dict[str, Any]:
    about = {
        "method": explanation.method,
        "explains": explanation.explains,
        "label": explanation.label,
        "index": explanation.index,
        "value": explanation.value,
        "signed": explanation.signed,
        "model": explanation.provenance.model,
        "seed": explanation.provenance.seed,
        "scores": explanation.scores.flatten().tolist(),
    }
    if isinstance(explanation.item, Text):
        words = explanation.words()
        return about | {
            "texts": list(explanation.item.parts),
            "tokens": [segment.text for segment in explanation.segments],
            "roles": [segment.role for segment in explanation.segments],
            "words": [word.text for word in words],
            "word_scores": [word.score for word in words],
        }
    picture: Picture = explanation.item
    grey = picture.view.shape[2] == 1
    return about | {
        "image": Image.fromarray(picture.view[..., 0] if grey else picture.view),
        "roles": [segment.role for segment in explanation.segments],
        "shape": list(explanation.scores.shape),
        "grid": list(picture.grid or ()),
    }


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ArgumentError(
            explain_error(
                f"this table needs {name}",
                got=f"no installed {name}",
                expected="the extra that makes tables",
                instead=f"pip install 'pellucid[{name}]'",
            )
        ) from None

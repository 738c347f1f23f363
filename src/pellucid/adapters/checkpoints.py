"""What a checkpoint may not make a machine do: run its code, read elsewhere, fill the memory.

transformers does most of it: code of a checkpoint and pickled objects do not run unless they are
trusted. Here is what it would do without being asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pellucid._errors import ModelError, explain_error

_MOST = {  # of what is made one by one, before any weight is looked at
    "num_labels": 200_000,
    **dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), 1000),
}
_ATTENTION = ("attn_implementation", "_attn_implementation")
_INDICES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
_QUIETLY = {  # a checkpoint in one file has no index
    "_raise_exceptions_for_gated_repo": False,
    "_raise_exceptions_for_missing_entries": False,
    "_raise_exceptions_for_connection_errors": False,
}


def check_checkpoint(path: str, revision: str | None, *, trusted: bool) -> None:
    """Refuse a checkpoint that asks for too much, before anything of it is made."""
    from transformers import PreTrainedConfig

    found, _ = PreTrainedConfig.get_config_dict(path, revision=revision)
    for name, value in _values(found):
        if name in _MOST and type(value) is int and value > _MOST[name]:
            raise _refused(path, f"{name}={value} in its config", f"at most {_MOST[name]}")
        if name in _ATTENTION and "/" in json.dumps(value) and not trusted:
            raise _refused(
                path,
                f"{name}={value!r} in its config, which is code from elsewhere",
                "an attention that is part of transformers",
                "read that code; if you trust it: pellucid.load(..., trust_remote_code=True)",
            )
    _check_shards(path, revision)


def _values(found: Any) -> Iterator[tuple[str, Any]]:
    """All named values of a config, those of its parts too."""
    for name, value in found.items() if isinstance(found, Mapping) else ():
        yield str(name), value
        yield from _values(value)


def _check_shards(path: str, revision: str | None) -> None:
    """The weights must lie beside the index that names them."""
    from transformers.utils import cached_file

    for index in _INDICES:
        file = cached_file(path, index, revision=revision, **_QUIETLY)
        if file is None:
            continue
        for shard in set(json.loads(Path(file).read_text(encoding="utf-8"))["weight_map"].values()):
            if Path(shard).name != shard:
                raise _refused(path, f"{shard!r} in {index}", "names of files in the same folder")


def _refused(
    path: str, got: str, expected: str, instead: str = "a checkpoint from a source that you trust"
) -> ModelError:
    return ModelError(
        explain_error(
            f"{path} asks for what no checkpoint should, and is not loaded",
            got=got,
            expected=expected,
            instead=instead,
        )
    )

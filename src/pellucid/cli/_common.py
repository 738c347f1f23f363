"""What several verbs share: loading a model quietly, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text


def load_model(name: str, **options: Any) -> Any:
    """The model, without the bars and reports that transformers prints while it loads."""
    from transformers.utils import logging

    from pellucid import load

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return load(name, **options)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A plain table; what it holds is printed as it is, never read as markup."""
    from pellucid.viz.markup import visible

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    Console(highlight=False).print(table)

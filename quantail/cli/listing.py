"""Plain tables on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits the terminal, without boxes."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in header:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table)

"""Tables in Markdown."""

import re
from collections.abc import Iterable, Sequence

SIGNS = re.compile(r"[\\*_\[\]<|]")
ESCAPES = {"<": "&lt;"}


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell may have several lines."""
    lines = [_row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, also in a cell, but for code in backticks."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [
        SIGNS.sub(lambda match: ESCAPES.get(match[0], f"\\{match[0]}"), one) for one in parts[::2]
    ]
    return "`".join(parts)


def code(text: str) -> str:
    return f"`{text}`"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", "<br>") for cell in cells) + " |"

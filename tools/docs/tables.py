"""Tables in Markdown."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; a cell may have several lines."""
    lines = [_row(columns), _row(["---"] * len(columns)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, also in a cell."""
    for sign in "\\`*_[]<":
        text = text.replace(sign, {"<": "&lt;"}.get(sign, f"\\{sign}"))
    return " ".join(text.split())


def code(text: str) -> str:
    return f"`{text}`"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("\n", "<br>").replace("|", "\\|") for cell in cells) + " |"

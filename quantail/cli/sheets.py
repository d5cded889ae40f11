"""Tables on a terminal."""

from rich import box
from rich.console import Console
from rich.table import Table

from quantail.evaluation.sheets import Sheet


def print_sheet(sheet: Sheet) -> None:
    """The table as wide as it needs to be, and its notes below it."""
    if not sheet.rows and not sheet.notes:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(sheet.columns):
        title = name.replace(" (paper)", "\n(paper)")
        table.add_column(title, justify="left" if sheet.is_words(index) else "right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    needed = console.measure(table, options=console.options.update(max_width=1000)).maximum
    console.width = max(console.width, needed)
    console.print(f"\n{sheet.title}", style="bold")
    if sheet.rows:
        console.print(table)
    for note in sheet.notes:
        console.print(note, soft_wrap=True)

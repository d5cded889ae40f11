"""Result tables on the terminal."""

from rich import box
from rich.console import Console
from rich.table import Table

from quantail.evaluation.result_tables import ResultTable


def print_table(table: ResultTable) -> None:
    """Print a table at its full width, with its notes below."""
    if not table.rows and not table.notes:
        return
    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for index, name in enumerate(table.columns):
        title = name.replace(" (paper)", "\n(paper)")
        shown.add_column(title, justify="left" if table.is_words(index) else "right", no_wrap=True)
    for row in table.rows:
        shown.add_row(*row)
    console = Console(highlight=False, markup=False)
    needed = console.measure(shown, options=console.options.update(max_width=1000)).maximum
    console.width = max(console.width, needed)
    console.print(f"\n{table.title}", style="bold")
    if table.rows:
        console.print(shown)
    for note in table.notes:
        console.print(note, soft_wrap=True)

"""Show a running study: a live table on a terminal, plain lines otherwise."""

import time
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from quantail.experiments.engines import Engine, Event
from quantail.experiments.folder import State, StudyFolder
from quantail.experiments.runner import View
from quantail.experiments.study import Job
from quantail.text import duration

REFRESH = 1.0  # seconds between two updates of the table
STATUS_EVERY = 60.0  # seconds between two status lines without a terminal
STOPPING = "stopping: the runs save and exit; press Ctrl-C again to end them immediately"
SHOWN = 12  # maximum rows of running and of failed runs


class PlainView(View):
    """Print a line when a run starts or ends, and a status line every minute."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.start_time = time.monotonic()
        self._last_status = time.monotonic()
        self.running: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self.folder: StudyFolder | None = None
        self.total = self.before = self.done = 0

    def on_start(self, folder: StudyFolder, engine: Engine, jobs: list[Job]) -> None:
        self.folder = folder
        self.total = len(folder.jobs)
        self.before = self.done = self.total - len(jobs)

    def on_event(self, event: Event) -> None:
        if event.what == "started":
            self.running[event.name] = time.monotonic()
        else:
            self.running.pop(event.name, None)
        if event.what == "done":
            self.done += 1
        if event.what == "failed":
            self.failed[event.name] = event.reason
        self.show_event(event)

    def show_event(self, event: Event) -> None:
        count = f"{self.done} of {self.total} done"
        reason = f": {event.reason}" if event.reason else ""
        self.line(f"{event.what:<8} {event.name}{reason}  ({count})")

    def on_tick(self) -> None:
        if time.monotonic() - self._last_status >= STATUS_EVERY:
            self._last_status = time.monotonic()
            self.line(self.status(self.states()))

    def on_stop(self) -> None:
        self.line(STOPPING)

    def line(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True, markup=False)

    def states(self) -> dict[str, State]:
        """Return the progress of the running runs."""
        assert self.folder is not None
        return {name: self.folder.state(name) for name in self.running}

    def status(self, states: dict[str, State]) -> str:
        """Return the progress of the study in one line."""
        rate = sum(state.rate for state in states.values())
        elapsed = duration(time.monotonic() - self.start_time)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        waiting = self.total - self.done - len(self.running) - len(self.failed)
        return (
            f"{self.done} of {self.total} done, {len(self.running)} running, {max(waiting, 0)} waiting"
            f"{failed}, {rate:,.0f} steps/s, {elapsed} so far"
        )


class LiveView(PlainView):
    """Show the same as a live table."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._last_draw = 0.0
        self._live: Live | None = None
        self._stopping = False

    def on_start(self, folder: StudyFolder, engine: Engine, jobs: list[Job]) -> None:
        super().on_start(folder, engine, jobs)
        self._live = Live(console=self.console, auto_refresh=False, transient=True)
        self._live.start()

    def show_event(self, event: Event) -> None:
        self._last_draw = 0.0  # redraw the table now

    def on_stop(self) -> None:
        self._stopping = True
        self._last_draw = 0.0

    def on_tick(self) -> None:
        if self._live and time.monotonic() - self._last_draw >= REFRESH:
            self._last_draw = time.monotonic()
            self._live.update(self.table(), refresh=True)

    def close(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None

    def table(self) -> RenderableType:
        states = self.states()
        rows = study_table(list(states.values()), self.failed)
        top: list[RenderableType] = [
            ProgressBar(self.total, self.done, width=40),
            Text(self.status(states)),
        ]
        if self._stopping:
            top.append(Text(STOPPING, style="yellow"))
        return Group(*top, rows)


def study_table(running: list[State], failed: dict[str, str], word: str = "running") -> Table:
    """Return a table of runs in progress with rate and time left, and of failed runs with the reason."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("run", "", "steps", "rate", "left"):
        table.add_column(name, justify="left" if name in ("run", "") else "right", overflow="fold")
    for state in running[:SHOWN]:
        total = state.job.config.run.steps
        left = (total - state.steps) / state.rate if state.rate else float("nan")
        rate = f"{state.rate:,.0f}/s" if state.rate else "–"
        share = f"{state.steps / total:.0%}"
        table.add_row(state.job.name, word, f"{state.steps:,} ({share})", rate, duration(left))
    if len(running) > SHOWN:
        table.add_row(f"and {len(running) - SHOWN} more", word, "", "", "")
    for name, reason in list(failed.items())[-SHOWN:]:
        table.add_row(Text(name, style="red"), Text(f"failed: {reason}", style="red"), "", "", "")
    return table


def view_for(stream: TextIO, *, quiet: bool = False) -> View:
    """Return a live table if the stream is a terminal, else plain lines; with `quiet`, neither."""
    if quiet:
        return View()
    console = Console(file=stream)
    return LiveView(console) if console.is_terminal else PlainView(console)

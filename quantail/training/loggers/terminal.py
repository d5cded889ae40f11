"""Report the progress of a run, live on a terminal or as plain lines."""

import math
import sys
import time
from collections.abc import Callable
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar as Bar
from rich.table import Table
from rich.text import Text

from quantail.text import counted, duration
from quantail.training.callbacks import Callback
from quantail.training.progress import Progress, Status, Summary

REDRAW = 0.1  # seconds


class _QuietPipeConsole(Console):
    """Ignore a closed pipe, so that the run continues without output."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


class ProgressBar(Callback):
    """A callback that prints what the command line prints: the settings, each evaluation and a summary.

        quantail.train("CartPole-v1", callbacks=[quantail.ProgressBar()])

    On a terminal, a progress bar shows the speed, recent returns and the loss.

    Args:
        stream: Where to print; by default the standard error.
        quiet: Whether to print only warnings and the summary.
    """

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self.console = _QuietPipeConsole(file=stream or sys.stderr, markup=False)
        self.quiet = quiet
        self.ended = False  # whether the run has ended or was stopped, and its summary is printed
        self._live: Live | None = None
        self._shown = 0.0
        self._evaluating = False
        self._rate = _Rate()

    def on_start(self, progress: Progress) -> None:
        if self.quiet:
            return
        for name, text in progress.description.items():
            self.console.print(Text.assemble((f"{name:<12}", "bold"), text), soft_wrap=True)
        if self.console.is_terminal:
            self._rate.add(progress.steps)
            view = self._view(progress.status)
            self._live = Live(view, console=self.console, auto_refresh=False, transient=True)
            self._live.start()

    def on_step(self, progress: Progress) -> None:
        self._evaluating = False
        if self._live and time.monotonic() - self._shown >= REDRAW:
            self._shown = time.monotonic()
            self._rate.add(progress.steps)
            self._refresh(progress)

    def on_evaluation_start(self, progress: Progress) -> None:
        self._evaluating = True
        self._refresh(progress)

    def on_evaluation(self, progress: Progress) -> None:
        self._evaluating = False
        self._rate.restart()
        if not self.quiet:
            self.console.print(_evaluation_line(progress), highlight=False, soft_wrap=True)

    def on_warning(self, progress: Progress) -> None:
        self.console.print(f"quantail: {progress.warning}", style="yellow", soft_wrap=True)

    def on_end(self, progress: Progress) -> None:
        self.on_close(progress)
        self.ended = True
        for line in summary_lines(progress.summary):
            self.console.print(line, highlight=False, soft_wrap=True)

    def on_close(self, progress: Progress) -> None:
        """Restore the terminal."""
        if self._live:
            self._live.stop()
            self._live = None

    def _refresh(self, progress: Progress) -> None:
        if self._live:
            self._live.update(self._view(progress.status), refresh=True)

    def _view(self, s: Status) -> Group:
        rate = self._rate.per_second()
        left = (s.total_steps - s.steps) / rate if rate else math.nan
        bar = Table.grid(padding=(0, 2))
        bar.add_row(
            Bar(s.total_steps, s.steps, width=30),
            f"{s.steps / s.total_steps:4.0%}",
            f"{s.steps:,} of {s.total_steps:,} steps",
            *([f"{s.frames:,} frames"] if s.frames > s.steps else []),
        )
        facts = Table.grid(padding=(0, 2))
        facts.add_row(
            "evaluating…" if self._evaluating else f"{rate:,.0f} steps/s" if rate else "–",
            f"{duration(left)} left",
            f"recent return {_number(s.recent_return)}",
            f"best {_number(s.best_value)}",
            f"loss {_number(s.loss, 4)}",
            f"ε {s.epsilon:.3f}",
        )
        return Group(bar, facts)


class _Rate:
    """Steps per second over a recent window."""

    def __init__(self, window: float = 10.0) -> None:
        self.window = window
        self.points: list[tuple[float, int]] = []
        self.known = 0.0

    def add(self, steps: int) -> None:
        now = time.monotonic()
        self.points.append((now, steps))
        while now - self.points[0][0] > self.window:
            self.points.pop(0)

    def restart(self) -> None:
        """Start a new window, for example after an evaluation, during which no steps are taken."""
        self.known = self.per_second()
        self.points.clear()

    def per_second(self) -> float:
        if len(self.points) < 2 or self.points[-1][0] - self.points[0][0] < 0.5:
            return self.known
        (begin, first), (end, last) = self.points[0], self.points[-1]
        return (last - first) / (end - begin)


def exit_status(bar: ProgressBar, run: Callable[[], object]) -> int:
    """Train, and return the exit status of the command.

    It is 130 if Ctrl-C stopped a run that was saved and has printed how to resume it. A run that a
    callback stops has done what the user asked for: 0.
    """
    try:
        run()
    except KeyboardInterrupt:
        if not bar.ended:
            raise
        return 130
    return 0


def _evaluation_line(progress: Progress) -> str:
    evaluation, steps = progress.evaluation, progress.steps
    assert evaluation is not None
    value = evaluation.value()
    # The best value is that of this evaluation if it is the best so far.
    mark = "  best so far" if steps and value == progress.status.best_value else ""
    if not evaluation.risk.is_neutral:
        mark = f"  {evaluation.risk.label} {value:.2f}{mark}"
    when = f"step {steps:,}" if steps else "random actions"
    return (
        f"  {when:>14}  mean return {evaluation.mean:8.2f} over "
        f"{counted(len(evaluation.returns), 'episode')} "
        f"({evaluation.returns.min():g} to {evaluation.returns.max():g}){mark}"
    )


def summary_lines(s: Summary) -> list[str]:
    """Return the summary of a run: scores, best checkpoint, time and the next commands."""
    total = sum(s.seconds.values())
    shares = ", ".join(f"{name} {seconds / total:.0%}" for name, seconds in s.seconds.items() if total)
    several = s.frames > s.steps  # frames a step
    lines = [""]
    if s.stopped_by:
        how = "Ctrl-C" if s.stopped_by == "SIGINT" else s.stopped_by
        lines.append(
            f"stopped  after {s.steps:,} of {s.total_steps:,} steps by {how}; everything is saved"
        )
    else:
        frames = f" ({s.frames:,} frames)" if several else ""
        lines.append(f"done     {counted(s.steps, 'step')}{frames}, {counted(s.updates, 'update')}")
    means, values = s.scores.means, s.scores.values
    if "final" in means:
        lines.append(
            f"score    mean return {means['final']:.2f} now, "
            f"{means['random']:.2f} with random actions (not discounted)"
        )
        if s.risk != "neutral":
            lines.append(
                f"risk     {s.risk} of the same returns {values['final']:.2f} now, "
                f"{values['random']:.2f} with random actions"
            )
    if "best" in values:
        steps = s.scores.best_steps
        folder = s.run / "checkpoints" / f"{steps:09d}"
        what = "mean return" if s.risk == "neutral" else s.risk
        best = f"{what} {values['best']:.2f} after {counted(steps, 'step')}"
        lines.append(f"best     {best}, kept in {folder}")
    lines.append(f"time     {duration(total)}: {shares}")
    if played := total - s.seconds.get("evaluation", 0.0):
        frames = f" ({s.frames / played:,.0f} frames)" if several else ""
        lines.append(f"speed    {s.steps / played:,.0f} steps{frames} per second, without evaluations")
    lines.append("next steps")
    if s.stopped_by:
        lines.append(f"  quantail resume {s.run}{s.trust}")
    else:
        lines.append(f"  quantail report {s.run}{s.trust}")
        lines.append(f"  quantail eval {s.run} --episodes 100{s.trust}")
        other = "neutral" if s.risk != "neutral" else "cvar:0.25"
        if not s.mean_only:
            lines.append(f"  quantail eval {s.run} --risk {other}{s.trust}")
        lines.append(f"  quantail resume {s.run} --steps {2 * s.total_steps}{s.trust}")
    return lines


def _number(value: float, digits: int = 2) -> str:
    return "–" if math.isnan(value) else f"{value:.{digits}f}"

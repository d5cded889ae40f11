"""One self-contained page about runs, the figures as files, and the numbers behind them as tables."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.evaluation import Protocol, evaluate
from quantail.evaluation.results import require_one_protocol
from quantail.files import write_text
from quantail.training.history import Group, History, group_runs, read_history
from quantail.training.results import pick_result, save_result, saved_results
from quantail.training.train import load
from quantail.viewing import sections
from quantail.viewing.page import Report, render
from quantail.viewing.style import styled


def write_report(
    runs: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    protocol: str | None = None,
    evaluate_missing: bool = True,
    say: Callable[[str], None] = lambda sentence: None,
) -> Path:
    """Write a page about runs and return its path; by default into the folder `report` of a single run.

    `protocol` is that of the scores, where runs have results under several. A run without any result is
    evaluated afresh first, 30 episodes under its own protocol, and keeps it.
    """
    if not runs:
        raise QuantailError("report takes one run or more.")
    if out is None:
        out = Path(runs[0]) / "report" if len(runs) == 1 else Path("report")
    histories = [read_history(run) for run in runs]
    groups = group_runs(histories)
    _require_one_curve_protocol(groups)
    if evaluate_missing:
        _evaluate(histories, say)
    results = _results(groups, protocol)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    report = Report(folder)
    with styled():
        sections.learning(report, groups)
        sections.scores_of_runs(report, groups, results)
        sections.distributions(report, groups, say)
        sections.time_spent(report, groups)
    sections.details(report, groups)
    page = folder / "index.html"
    write_text(page, render(report, groups))
    return page


def _require_one_curve_protocol(groups: Sequence[Group]) -> None:
    """Curves on one axis must have been measured alike."""
    seen: dict[str, History] = {}
    for run in (run for group in groups for run in group.runs):
        other = seen.setdefault(run.info.env, run)
        if run.protocol.hash != other.protocol.hash:
            raise QuantailError(
                f"{other.path} was evaluated under {other.protocol.label} and {run.path} under "
                f"{run.protocol.label}: they do not belong in one report."
            )


def _evaluate(histories: Sequence[History], say: Callable[[str], None]) -> None:
    """Evaluate the runs that have no result, where their environment can be made."""
    for history in histories:
        if not history.results:
            say(f"{history.path} has no result yet: playing 30 episodes under its own protocol")
            try:
                agent = load(history.path)
                save_result(history.path, agent, evaluate(agent))
            except QuantailError as error:
                say(f"left out: {error}")
            history.results.extend(saved_results(history.path))


def _results(groups: Sequence[Group], protocol: str | None) -> sections.Results:
    """Each run's result with its own risk; where runs have several protocols, one must be named."""
    found: sections.Results = {}
    for group in groups:
        for run in group.runs:
            kinds: dict[str, list[dict[str, Any]]] = {}
            for content in run.results:
                one: Protocol = content["protocol"]
                if protocol is None or protocol in (one.name, one.label):
                    kinds.setdefault(f"{one.label} {one.starts}", []).append(content)
            if len(kinds) > 1:
                raise QuantailError(
                    f"{run.path} has results under {', '.join(kinds)}: choose one with --protocol."
                )
            for contents in kinds.values():
                if picked := pick_result(contents, run.path, run.settings.played_risk()):
                    found[run.path] = picked
    for members in sections.families(groups, found).values():
        require_one_protocol(members)
    return found

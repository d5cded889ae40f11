"""One self-contained page about runs, the figures as files, and the numbers behind them as tables."""

from collections.abc import Callable, Sequence
from pathlib import Path

from quantail.errors import QuantailError
from quantail.evaluation import evaluate
from quantail.evaluation.results import Result, require_one_protocol
from quantail.files import write_text
from quantail.registry import Trust, trusted_modules
from quantail.training.chosen_results import Kept, checksum_of, is_own, no_result, run_results
from quantail.training.history import Group, History, group_runs, read_history
from quantail.training.results import save_result, saved_results
from quantail.training.train import load
from quantail.viewing import sections
from quantail.viewing.page import Report, render, shown_files
from quantail.viewing.style import styled

Choice = tuple[str | None, str | None]  # protocol and recording, where one is named


def write_report(
    runs: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    protocol: str | None = None,
    starts: str | Path | None = None,
    evaluate_missing: bool = True,
    say: Callable[[str], None] = lambda sentence: None,
    trust: Trust = (),
) -> Path:
    """Write a page about runs and return its path; by default into the folder `report` of a single run.

    `protocol` is that of the scores, where runs have results under several, and `starts` the recording
    they began from, its file or its checksum. A run without a result of its own risk measure is first
    evaluated afresh, 30 episodes under its own protocol, and keeps it. `trust` are the modules that may
    be imported where a run names them; what needs another one is left out, and the page says so.
    """
    if not runs:
        raise QuantailError("report takes one run or more.")
    trust = trusted_modules(trust)
    if out is None:
        out = Path(runs[0]) / "report" if len(runs) == 1 else Path("report")
    groups = group_runs([read_history(run) for run in runs])
    _require_one_curve_protocol(groups)
    results = _results(groups, (protocol, checksum_of(starts)), evaluate_missing, say, trust)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    before = shown_files(page)
    report = Report(folder)
    with styled():
        sections.learning(report, groups)
        sections.scores_of_runs(report, groups, results)
        sections.distributions(report, groups, say, trust)
        sections.time_spent(report, groups)
    sections.details(report, groups)
    write_text(page, render(report, groups))
    for name in before - set(report.files):
        (folder / name).unlink(missing_ok=True)
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


def _results(
    groups: Sequence[Group],
    choice: Choice,
    evaluate_missing: bool,
    say: Callable[[str], None],
    trust: Trust,
) -> sections.Results:
    """Each run's result with its own risk; where runs have several kinds, one must be chosen."""
    found: sections.Results = {}
    missing = []
    for group, run in [(one, run) for one in groups for run in one.runs]:
        kept = _own(group, run, choice)
        if kept:
            found[run.path] = _only(run, kept)
        elif evaluate_missing and Result("", "", "", 0.0, run.protocol.label).matches(*choice):
            missing.append((group, run))
        elif any(choice):
            raise QuantailError(no_result(group, run, *choice))
    for members in sections.families(groups, found).values():
        require_one_protocol(members)
    for group, run in missing:
        _evaluate(run, say, trust)
        if kept := _own(group, run, choice):
            found[run.path] = _only(run, kept)
    for members in sections.families(groups, found).values():
        require_one_protocol(members)
    return found


def _own(group: Group, run: History, choice: Choice) -> list[tuple[Result, Kept]]:
    """The run's results with its own risk."""
    return [one for one in run_results(group, run, *choice) if is_own(run, one[1])]


def _only(run: History, kept: Sequence[tuple[Result, Kept]]) -> tuple[Result, Kept]:
    if len(kept) == 1:
        return kept[0]
    flag = "--starts" if len({result.conditions for result, _ in kept}) == 1 else "--protocol"
    told = ", ".join(f"{one.protocol}{f' from {one.starts}' * bool(one.starts)}" for one, _ in kept)
    raise QuantailError(f"{run.path} has results under {told}: choose one with {flag}.")


def _evaluate(run: History, say: Callable[[str], None], trust: Trust) -> None:
    """Play and keep what a run lacks, where its environment can be made."""
    risk = f" with {run.settings.played_risk()}" if run.results else ""
    say(f"{run.path} has no result{risk} yet: playing 30 episodes under its own protocol")
    try:
        agent = load(run.path, trust=trust)
        save_result(run.path, agent, evaluate(agent))
    except QuantailError as error:
        say(f"left out: {error}")
    run.results[:] = saved_results(run.path)

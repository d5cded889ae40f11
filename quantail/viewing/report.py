"""Write a self-contained HTML report on runs, with all figures and tables as files beside it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from quantail import registry
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import evaluate
from quantail.evaluation.results import Result, require_one_protocol
from quantail.extras import require_extra
from quantail.files import write_text
from quantail.runs.history import Group, History, group_runs, read_history
from quantail.runs.results import save_result, saved_results
from quantail.runs.select_results import SavedResult, checksum_of, is_own, no_result, run_results
from quantail.training.train import load
from quantail.trust import Trust, trusted_modules
from quantail.viewing import sections
from quantail.viewing.page import Report, render, shown_files

Choice = tuple[str | None, str | None]  # protocol and recording, if given


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
    """Write a report on runs and return its path; the default is the folder `report` of a single run.

    If runs have results under several protocols, `protocol` selects one; `starts` selects the recording
    from which episodes start, by its file or its checksum. A run without a result under its own risk
    measure is evaluated first, on 30 episodes under its own protocol, and the result is saved there.
    `trust` lists the modules that may be imported if a run names them; what needs any other module is
    left out, and the page says so.
    """
    if not runs:
        raise QuantailError("report needs at least one run.")
    require_extra("plots", "a report")  # before runs are evaluated, which takes long
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
    sections.learning_curves(report, groups)
    sections.evaluation_scores(report, groups, results)
    sections.predicted_returns(report, groups, say, trust)
    sections.training_time(report, groups)
    sections.run_details(report, groups)
    write_text(page, render(report, groups))
    for name in before - set(report.files):
        (folder / name).unlink(missing_ok=True)
    return page


def _require_one_curve_protocol(groups: Sequence[Group]) -> None:
    """Refuse curves of one environment that were evaluated under different protocols."""
    seen: dict[str, History] = {}
    for run in (run for group in groups for run in group.runs):
        other = seen.setdefault(run.info.env, run)
        if run.protocol.hash != other.protocol.hash:
            raise QuantailError(
                f"{other.path} was evaluated under {other.protocol.label} and {run.path} under "
                f"{run.protocol.label}: they cannot be shown in one report."
            )


def _results(
    groups: Sequence[Group],
    choice: Choice,
    evaluate_missing: bool,
    say: Callable[[str], None],
    trust: Trust,
) -> sections.Results:
    """Return the result of each run under its own risk measure; evaluate runs that have none."""
    found: sections.Results = {}
    missing = []
    for group, run in [(one, run) for one in groups for run in one.runs]:
        own = _own_results(group, run, choice)
        if own:
            found[run.path] = _only(run, own)
        elif evaluate_missing and Result("", "", "", 0.0, run.protocol.label).matches(*choice):
            missing.append((group, run))
        elif any(choice):
            raise QuantailError(no_result(group, run, *choice))
    for members in sections.families(groups, found).values():
        require_one_protocol(members)
    for group, run in missing:
        _evaluate(run, say, trust)
        if own := _own_results(group, run, choice):
            found[run.path] = _only(run, own)
    for members in sections.families(groups, found).values():
        require_one_protocol(members)
    return found


def _own_results(group: Group, run: History, choice: Choice) -> list[tuple[Result, SavedResult]]:
    """Return the results of the run under its own risk measure."""
    return [one for one in run_results(group, run, *choice) if is_own(run, one[1])]


def _only(run: History, results: Sequence[tuple[Result, SavedResult]]) -> tuple[Result, SavedResult]:
    """Return the only result of a run, or raise an error that says how to select one."""
    if len(results) == 1:
        return results[0]
    flag = "--starts" if len({result.conditions for result, _ in results}) == 1 else "--protocol"
    found = ", ".join(f"{one.protocol}{f' from {one.starts}' * bool(one.starts)}" for one, _ in results)
    raise QuantailError(f"{run.path} has results under {found}: choose one with {flag}.")


def _evaluate(run: History, say: Callable[[str], None], trust: Trust) -> None:
    """Evaluate a run and save the result, if its environment can be made."""
    risk = f" with {registry.label('risk', run.config.risk.played)}" if run.results else ""
    say(f"{run.path} has no result{risk} yet: evaluating 30 episodes under its own protocol")
    try:
        agent = load(run.path, trust=trust)
        save_result(run.path, agent, evaluate(agent))
    except QuantailError as error:
        say(f"left out: {error}")
    run.results[:] = saved_results(run.path)

"""Select the results that represent each run, and collect results from many runs and tables."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError
from quantail.evaluation.games import game_of
from quantail.evaluation.protocols import Protocol
from quantail.evaluation.results import Result, describe_selection, list_protocols, read_results
from quantail.evaluation.starts import read_recording
from quantail.runs.history import Group, History, group_runs, read_history
from quantail.runs.results import pick_result

SavedResult = dict[str, Any]  # an evaluation as `saved_results` reads it


def run_results(
    group: Group, run: History, protocol: str | None = None, starts: str | None = None
) -> list[tuple[Result, SavedResult]]:
    """Return one result for each protocol, recording and risk, as a table row and as it was saved."""
    kinds: dict[tuple[str, str, str], list[SavedResult]] = {}
    for content in run.results:
        one = content["protocol"]
        if result_of(group, run, content).matches(protocol, starts):
            kinds.setdefault((one.hash, one.starts, content["risk"]), []).append(content)
    picked = [pick_result(contents, run.path) for contents in kinds.values()]
    return [(result_of(group, run, content), content) for content in picked]


def result_of(group: Group, run: History, content: SavedResult) -> Result:
    """Return a saved evaluation as a table row."""
    protocol: Protocol = content["protocol"]
    other = "" if is_own(run, content) else f", played with {content['risk']}"
    return Result(
        agent=f"{group.label}{other}",
        game=game_of(run.info.env),
        seed=str(run.config.run.seed),
        score=content["mean"],
        protocol=protocol.label,
        starts=protocol.starts,
        frames=str(content["frames"]),
        episodes=str(content["episodes"]),
        source=str(run.path),
    )


def is_own(run: History, content: SavedResult) -> bool:
    """Return whether the evaluation used the run's own risk measure."""
    own: str = run.config.risk.played
    return bool(content["risk"] == own)


def collect_results(
    sources: Iterable[str | Path], protocol: str | None = None, starts: str | Path | None = None
) -> list[Result]:
    """Return the results of runs and CSV tables.

    `protocol` and `starts` select the results under one protocol or from one recording; `starts` is the
    recording's file or its checksum.
    """
    paths, chosen = [Path(source) for source in sources], checksum_of(starts)
    tables = [path for path in paths if path.suffix.lower() == ".csv"]
    results: list[Result] = []
    for group in group_runs([read_history(path) for path in paths if path not in tables]):
        for run in group.runs:
            found = run_results(group, run, protocol, chosen)
            if not found:
                raise QuantailError(no_result(group, run, protocol, chosen))
            results += [result for result, _ in found]
    for path in tables:
        rows = read_results(path)
        selected = [one for one in rows if one.matches(protocol, chosen)]
        if not selected:
            wanted, existing = describe_selection(protocol, chosen), list_protocols(rows)
            raise QuantailError(f"{path} has no result {wanted}: it has {existing}.")
        results += selected
    return results


def checksum_of(starts: str | Path | None) -> str | None:
    """Return the checksum that identifies a recording in results, given its file or the checksum."""
    if starts is not None and Path(starts).is_file():
        return read_recording(starts).checksum
    return None if starts is None else str(starts)


def no_result(group: Group, run: History, protocol: str | None, starts: str | None) -> str:
    """Return an error message that says why a run has no matching result, and which ones it has."""
    if not run.results:
        return f"{run.path} has no result: make one with `quantail eval {run.path} --protocol NAME`."
    existing = list_protocols(result_of(group, run, content) for content in run.results)
    return f"{run.path} has no result {describe_selection(protocol, starts)}: it has {existing}."

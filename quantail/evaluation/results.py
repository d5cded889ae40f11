"""Evaluation results as tidy rows: one for each agent, game and seed."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, damage, did_you_mean
from quantail.evaluation.games import game_of
from quantail.evaluation.protocols import PROTOCOLS

UNKNOWN = "unknown"  # the protocol of a CSV file without that column
LABEL = re.compile(r"(?P<name>.*?)( v(?P<version>\d+))?( \((?P<hash>[^()]*)\))?")


@dataclass(frozen=True)
class Result:
    """The score of one agent and seed in one game."""

    agent: str
    game: str
    seed: str
    score: float
    protocol: str = UNKNOWN
    starts: str = ""  # the recording, for human starts
    frames: str = ""  # of training behind the weights
    episodes: str = ""
    source: str = ""  # run or file

    @property
    def human_starts(self) -> bool:
        return bool(self.starts) or self.conditions == PROTOCOLS["human-starts"].hash

    @property
    def protocol_name(self) -> str:
        """Return the name of the protocol, without version and hash."""
        return _parts(self.protocol)["name"]

    @property
    def conditions(self) -> str:
        """Return the protocol's hash; for the bare name of a standard protocol, the hash of that.

        A label with neither a hash nor a standard name is returned as it is.
        """
        parts = _parts(self.protocol)
        if parts["hash"]:
            return parts["hash"]
        standard = PROTOCOLS.get(re.sub(r"[ _]", "-", parts["name"].lower()))
        of_ale = standard is not None and "/" not in self.game
        if standard and of_ale and parts["version"] in ("", str(standard.version)):
            return standard.hash
        return self.protocol

    def matches(self, protocol: str | None, starts: str | None = None) -> bool:
        """Return whether the result has this protocol (name, label or hash) and this recording."""
        wanted = Result("", self.game, "", 0.0, protocol or "")
        names = (self.protocol, self.protocol_name, self.conditions)
        fits = protocol is None or protocol in names or wanted.conditions == self.conditions
        return fits and (starts is None or starts in (self.starts, _checksum(self.starts)))


COLUMNS = tuple(field.name for field in fields(Result))


def _parts(label: str) -> dict[str, str]:
    found = LABEL.fullmatch(label.strip())
    assert found is not None  # it matches any text
    return found.groupdict(default="")


def _checksum(starts: str) -> str:
    """Return the checksum in `recording CHECKSUM by PLAYER`."""
    return starts.removeprefix("recording ").partition(" by ")[0]


def describe_selection(protocol: str | None, starts: str | None) -> str:
    """Describe a selection of results, to follow "no result" in a message."""
    words = [f"under protocol {protocol}"] * bool(protocol) + [f"from starts {starts}"] * bool(starts)
    return " ".join(words)


def list_protocols(results: Iterable[Result]) -> str:
    """List the protocols of results with their recordings, each once."""
    names = (f"{one.protocol_name}{f' from {one.starts}' * bool(one.starts)}" for one in results)
    return ", ".join(sorted(set(names)))


def read_results(path: Path) -> list[Result]:
    """Read results from a CSV file with the columns game and score; the other columns are optional."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows = [(reader.line_num, row) for row in reader]
    except FileNotFoundError:
        raise QuantailError(f"there is no table at {path}.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise QuantailError(f"{path} is not a CSV table: {damage(error)}.") from error
    _check_header(path, [name.strip() for name in reader.fieldnames or ()])
    if not rows:
        raise QuantailError(f"{path} has no rows.")
    return [_result(path, line, row) for line, row in rows]


def _check_header(path: Path, header: Sequence[str]) -> None:
    takes = f"the columns are {', '.join(COLUMNS)}, of which game and score are required"
    unknown = [name for name in header if name not in COLUMNS]
    guess = did_you_mean(unknown[0], COLUMNS) if unknown else ""
    if missing := {"game", "score"} - set(header):
        raise QuantailError(f"{path} lacks the column {' and '.join(sorted(missing))}: {takes}.{guess}")
    if unknown:
        named = ", ".join(map(repr, unknown))
        raise QuantailError(f"{path} has unknown columns, {named}: {takes}.{guess}")


def _result(path: Path, line: int, row: dict[Any, Any]) -> Result:
    if None in row:
        raise QuantailError(
            f"{path}, line {line} has more cells than the table has columns: put a number with a "
            'thousands separator in quotes, as in "1,234".'
        )
    known = {name.strip(): value.strip() for name, value in row.items() if value and value.strip()}
    score = _number(known.pop("score", ""))
    if not math.isfinite(score):
        raise QuantailError(f"{path}, line {line}: score takes a number.")
    if "game" not in known:
        raise QuantailError(f"{path}, line {line}: game is empty.")
    values = {"agent": path.stem, "seed": "0", "source": str(path)} | known
    return Result(score=score, **values | {"game": game_of(known["game"])})


def results_csv(results: Iterable[Result]) -> str:
    """Return the results as CSV text, as `read_results` reads it."""
    return csv_text(COLUMNS, (asdict(result).values() for result in results))


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV text."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _number(text: str) -> float:
    """Parse a number, with or without thousands separators; return NaN for anything else."""
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text):
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return math.nan


def require_one_protocol(results: Sequence[Result]) -> str:
    """Return the protocol of all results; refuse to mix protocols, whose scores are not comparable."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.conditions, result)
    if len(first) > 1:
        named = "; ".join(f"{one.protocol} ({one.source})" for one in first.values())
        raise QuantailError(
            f"scores under different protocols do not belong in one table: {named}. {_advice(results)}"
        )
    first_of_game: dict[str, Result] = {}
    for result in results:
        other = first_of_game.setdefault(result.game, result)
        if result.starts != other.starts:
            recordings = [f"{one.starts or 'none'} ({one.source})" for one in (other, result)]
            choose = _checksum(other.starts or result.starts)
            raise QuantailError(
                f"{result.game} was evaluated from different starts: {' and '.join(recordings)}. "
                f"Choose one with --starts, as in --starts {choose}."
            )
    return results[0].protocol


def _advice(results: Sequence[Result]) -> str:
    """Return what to do: choose a common protocol, evaluate again, or compare separately."""
    by_source: dict[str, set[str]] = {}
    for result in results:
        by_source.setdefault(result.source, set()).add(result.conditions)
    common = set.intersection(*by_source.values())
    if common:
        labels = sorted({one.protocol for one in results if one.conditions in common})
        return f"Choose one with --protocol: {', '.join(labels)}."
    if len({result.game for result in results}) > 1 and all(
        result.protocol_name.split(" with ")[0] == "own" for result in results
    ):
        return "Each result has the own protocol of its environment: show them in separate tables."
    return "Evaluate them under one protocol with `quantail eval RUN --protocol NAME`."


def _seed_order(seed: str) -> tuple[int, str]:
    return len(seed), seed  # 2 before 10


def by_agent(results: Iterable[Result]) -> dict[str, dict[str, list[float]]]:
    """Return agent -> game -> scores, in the order of the seeds."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        seeds = table.setdefault(result.agent, {}).setdefault(result.game, {})
        if result.seed in seeds:
            raise QuantailError(
                f"{result.agent} has two scores for {result.game} with seed {result.seed}, one of them "
                f"from {result.source}: pass each run only once."
            )
        seeds[result.seed] = result.score
    return {
        agent: {
            game: [seeds[seed] for seed in sorted(seeds, key=_seed_order)]
            for game, seeds in sorted(games.items())
        }
        for agent, games in table.items()
    }

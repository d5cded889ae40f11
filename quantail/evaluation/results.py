"""Results of evaluations as tidy rows: one for each agent, game and seed."""

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

UNKNOWN = "not told"
LABEL = re.compile(r"(?P<name>.*?)( v(?P<version>\d+))?( \((?P<hash>[^()]*)\))?")


@dataclass(frozen=True)
class Result:
    """One score of one agent in one game."""

    agent: str
    game: str
    seed: str
    score: float
    protocol: str = UNKNOWN
    starts: str = ""  # the recording, for human starts
    frames: str = ""  # of training that the weights have seen
    episodes: str = ""
    source: str = ""  # run or file

    @property
    def human_starts(self) -> bool:
        return bool(self.starts) or self.conditions == PROTOCOLS["human-starts"].hash

    @property
    def protocol_name(self) -> str:
        """The protocol without its version and hash."""
        return _parts(self.protocol)["name"]

    @property
    def conditions(self) -> str:
        """The hash of the protocol, a standard's where its name alone is told, else what is told."""
        parts = _parts(self.protocol)
        if parts["hash"]:
            return parts["hash"]
        standard = PROTOCOLS.get(re.sub(r"[ _]", "-", parts["name"].lower()))
        of_ale = standard is not None and "/" not in self.game
        if standard and of_ale and parts["version"] in ("", str(standard.version)):
            return standard.hash
        return self.protocol

    def matches(self, protocol: str | None, starts: str | None = None) -> bool:
        """Whether it was made under this protocol (its name, label or hash) and from this recording."""
        asked = Result("", self.game, "", 0.0, protocol or "")
        names = (self.protocol, self.protocol_name, self.conditions)
        fits = protocol is None or protocol in names or asked.conditions == self.conditions
        return fits and (starts is None or starts in (self.starts, _checksum(self.starts)))


COLUMNS = tuple(field.name for field in fields(Result))


def _parts(label: str) -> dict[str, str]:
    found = LABEL.fullmatch(label.strip())
    assert found is not None  # it matches any text
    return found.groupdict(default="")


def _checksum(starts: str) -> str:
    """Of `recording CHECKSUM by PLAYER`."""
    return starts.removeprefix("recording ").partition(" by ")[0]


def asked_for(protocol: str | None, starts: str | None) -> str:
    """A choice of results in words, to stand behind "no result"."""
    words = [f"under protocol {protocol}"] * bool(protocol) + [f"from starts {starts}"] * bool(starts)
    return " ".join(words)


def what_there_is(results: Iterable[Result]) -> str:
    """The protocols of results, and their recordings, each once."""
    told = (f"{one.protocol_name}{f' from {one.starts}' * bool(one.starts)}" for one in results)
    return ", ".join(sorted(set(told)))


def read_results(path: Path) -> list[Result]:
    """Results from a CSV with the columns game and score, and perhaps agent, seed and protocol."""
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
    takes = f"it takes {', '.join(COLUMNS)}, of which game and score must be there"
    unknown = [name for name in header if name not in COLUMNS]
    guess = did_you_mean(unknown[0], COLUMNS) if unknown else ""
    if missing := {"game", "score"} - set(header):
        raise QuantailError(f"{path} lacks the column {' and '.join(sorted(missing))}: {takes}.{guess}")
    if unknown:
        named = ", ".join(map(repr, unknown))
        raise QuantailError(f"{path} has columns that mean nothing here, {named}: {takes}.{guess}")


def _result(path: Path, line: int, row: dict[Any, Any]) -> Result:
    if None in row:
        raise QuantailError(
            f"{path}, line {line} has more cells than the table has columns: a number with a comma "
            'between its thousands takes quotes, as "1,234".'
        )
    known = {name.strip(): value.strip() for name, value in row.items() if value and value.strip()}
    score = _number(known.pop("score", ""))
    if not math.isfinite(score):
        raise QuantailError(f"{path}, line {line}: score takes a number.")
    if "game" not in known:
        raise QuantailError(f"{path}, line {line}: game is empty.")
    told = {"agent": path.stem, "seed": "0", "source": str(path)} | known
    return Result(score=score, **told | {"game": game_of(known["game"])})


def results_csv(results: Iterable[Result]) -> str:
    """The table that `read_results` reads."""
    return csv_text(COLUMNS, (asdict(result).values() for result in results))


def csv_text(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A table as a CSV file has it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _number(text: str) -> float:
    """A number, commas between its thousands or not; anything else is not one."""
    if re.fullmatch(r"-?\d{1,3}(,\d{3})+(\.\d*)?", text):
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:
        return math.nan


def require_one_protocol(results: Sequence[Result]) -> str:
    """The protocol of all results; several in one table would compare what cannot be compared."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.conditions, result)
    if len(first) > 1:
        named = "; ".join(f"{one.protocol} ({one.source})" for one in first.values())
        raise QuantailError(
            f"scores under different protocols do not belong in one table: {named}. {_way_out(results)}"
        )
    begun: dict[str, Result] = {}
    for result in results:
        other = begun.setdefault(result.game, result)
        if result.starts != other.starts:
            told = [f"{one.starts or 'none'} ({one.source})" for one in (other, result)]
            choose = _checksum(other.starts or result.starts)
            raise QuantailError(
                f"{result.game} was begun from different starts: {' and '.join(told)}. "
                f"Choose with --starts, as --starts {choose}."
            )
    return results[0].protocol


def _way_out(results: Sequence[Result]) -> str:
    """What helps: a choice where all have a protocol in common, else another evaluation, or none."""
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
        return "Each is its environment's own, and no choice makes them one: give them apart."
    return "Evaluate them under one of these with `quantail eval RUN --protocol NAME`."


def _in_order(seed: str) -> tuple[int, str]:
    return len(seed), seed  # 2 before 10


def by_agent(results: Iterable[Result]) -> dict[str, dict[str, list[float]]]:
    """Agent -> game -> a score for each seed, in the order of the seeds."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for result in results:
        seeds = table.setdefault(result.agent, {}).setdefault(result.game, {})
        if result.seed in seeds:
            raise QuantailError(
                f"{result.agent} has two scores for {result.game} with seed {result.seed}, one of them "
                f"from {result.source}: give each run once."
            )
        seeds[result.seed] = result.score
    return {
        agent: {
            game: [seeds[seed] for seed in sorted(seeds, key=_in_order)]
            for game, seeds in sorted(games.items())
        }
        for agent, games in table.items()
    }

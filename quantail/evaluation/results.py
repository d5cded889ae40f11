"""Results of evaluations as tidy rows: one for each agent, game and seed."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from quantail.errors import QuantailError
from quantail.evaluation.games import game_of

UNKNOWN = "not told"


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
        return re.sub(r"[ _]", "-", self.protocol.lower()).startswith("human-starts")

    @property
    def conditions(self) -> str:
        """The hash of the protocol, or its name where no hash is told."""
        return self.protocol.rpartition("(")[2].rstrip(")")


COLUMNS = tuple(field.name for field in fields(Result))


def read_results(path: Path) -> list[Result]:
    """Results from a CSV with the columns game and score, and perhaps agent, seed and protocol."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            rows, header = list(reader), reader.fieldnames or ()
    except (UnicodeDecodeError, csv.Error) as error:
        raise QuantailError(f"{path} is not a CSV table: {error}.") from error
    missing = {"game", "score"} - set(header)
    if missing:
        raise QuantailError(
            f"{path} lacks the column {' and '.join(sorted(missing))}: it takes {', '.join(COLUMNS)}, "
            "of which game and score must be there."
        )
    if not rows:
        raise QuantailError(f"{path} has no rows.")
    results = []
    for line, row in enumerate(rows, 2):
        known = {name: value.strip() for name, value in row.items() if name in COLUMNS and value}
        score = _number(known.pop("score", ""))
        if not math.isfinite(score):
            raise QuantailError(f"{path}, line {line}: score takes a number.")
        if not known.get("game"):
            raise QuantailError(f"{path}, line {line}: game is empty.")
        told = {"agent": path.stem, "seed": "0", "source": str(path)} | known
        results.append(Result(score=score, **told | {"game": game_of(known["game"])}))
    return results


def results_csv(results: Iterable[Result]) -> str:
    """The table that `read_results` reads."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(result) for result in results)
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
            f"scores under different protocols do not belong in one table: {named}. "
            "Choose one with --protocol, or evaluate again."
        )
    begun: dict[str, Result] = {}
    for result in results:
        other = begun.setdefault(result.game, result)
        if result.starts != other.starts:
            raise QuantailError(
                f"{result.game} was begun from different starts: {other.starts or 'none'} "
                f"({other.source}) and {result.starts or 'none'} ({result.source})."
            )
    return results[0].protocol


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

"""The 57 games of the ALE with published human scores, and the spellings of their names."""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REFERENCE = Path(__file__).parent / "reference"
VIDEO_PINBALL = "video_pinball"
# Alternative names of games, reduced to lower-case letters and digits.
ALIASES = {
    "jamesbond007": "jamesbond",
    "montezumasrevenge": "montezuma_revenge",
    "robottank": "robotank",
    "tutenkham": "tutankham",
    "upanddown": "up_n_down",
    "updown": "up_n_down",
}


@dataclass(frozen=True)
class Baseline:
    """The scores of random play and of a human in one game."""

    random: float
    human: float

    def normalise(self, score: float) -> float:
        """Return the human-normalised score: 0 is random play, 1 is human play."""
        return (score - self.random) / (self.human - self.random)


@cache
def baselines(human_starts: bool = False) -> dict[str, Baseline]:
    """Return the random and human scores of the 57 games, from no-op starts or from human starts."""
    suffix = "_human_starts" if human_starts else ""
    return {
        row["game"]: Baseline(float(row[f"random{suffix}"]), float(row[f"human{suffix}"]))
        for row in read_reference("games")
    }


def read_reference(name: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a table in reference/."""
    with (REFERENCE / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@cache
def game_of(name: str) -> str:
    """Return the canonical name of a game: ms_pacman for ALE/MsPacman-v5, Ms. Pacman and others."""
    plain = re.sub(r"(NoFrameskip|Deterministic)?-v\d+$", "", name.strip())
    family, _, last = plain.rpartition("/")
    ale = family.lower() in ("", "ale")
    known = {_letters(game): game for game in baselines()} | ALIASES
    if ale and _letters(last) in known:
        return known[_letters(last)]
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[ .]+", "_", last).lower()
    return spaced if ale else f"{family.lower()}/{spaced}"


def family_of(env: str) -> str:
    """Return the family of environments that share a table: ALE, a namespace, or the id itself."""
    plain = env.rpartition(":")[2]
    return "ALE" if game_of(plain) in baselines() else plain.rpartition("/")[0] or plain


def title_of(game: str) -> str:
    """Return the name of a game as tables print it."""
    return game.rpartition("/")[2].replace("_", " ").title()


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())

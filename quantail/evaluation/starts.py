"""Start states from recorded games, stored as a seed and the actions that lead to the state."""

import hashlib
import json
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from quantail.envs.make import make_player, player_conditions
from quantail.envs.observations import observation_checksum
from quantail.envs.source import EnvSource, name_of
from quantail.errors import QuantailError, damage
from quantail.files import check_schema, write_text

SCHEMA = 1
KIND = "quantail recording"
MARK_EVERY = 60  # actions between two checksums of the observation


@dataclass(frozen=True)
class Start:
    """The start state of an episode."""

    seed: int
    actions: tuple[int, ...]


@dataclass(frozen=True)
class Game:
    """A recorded game."""

    seed: int
    actions: tuple[int, ...]
    score: float
    marks: tuple[int, ...]  # checksums of the observation after every MARK_EVERY actions, and at the end

    def to_dict(self) -> dict[str, Any]:
        runs = [[action, len(list(same))] for action, same in groupby(self.actions)]
        return {"seed": self.seed, "score": self.score, "actions": runs, "marks": list(self.marks)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Game":
        actions = tuple(int(a) for a, count in content["actions"] for _ in range(int(count)))
        marks = tuple(int(mark) for mark in content["marks"])
        return cls(int(content["seed"]), actions, float(content["score"]), marks)


@dataclass(frozen=True)
class Recording:
    """Recorded games of one environment by one player."""

    env: str
    by: str
    conditions: dict[str, Any]
    games: tuple[Game, ...]

    @property
    def hash(self) -> str:
        """Return a hash of the conditions under which the games were played."""
        return _hash(json.dumps(self.conditions, sort_keys=True))

    @property
    def checksum(self) -> str:
        """Return a checksum of the environment, the player and the games."""
        return _hash("".join([self.env, self.by, *self._lines()]))

    @property
    def label(self) -> str:
        """Return checksum and player, as results name their starts."""
        return f"recording {self.checksum} by {self.by}"

    def _lines(self) -> list[str]:
        return [json.dumps(game.to_dict(), separators=(",", ":")) + "\n" for game in self.games]

    def write(self, path: str | Path) -> None:
        """Write a header line and one line for each game, replacing the file atomically."""
        header = {
            "schema": SCHEMA,
            "kind": KIND,
            "env": self.env,
            "by": self.by,
            "protocol": self.conditions,
            "hash": self.hash,
            "checksum": self.checksum,
        }
        write_text(Path(path), json.dumps(header) + "\n" + "".join(self._lines()))

    def require_fit(self, env: EnvSource) -> None:
        """Raise an error if the recording cannot be replayed in this environment.

        It must be the same game under the same conditions, and replaying it must give the same frames.
        """
        current = player_conditions(env)
        if current["env"] != self.conditions.get("env"):
            raise QuantailError(f"the starts are from {self.env}, but the agent plays {name_of(env)}.")
        if current != self.conditions:
            changed = sorted(
                {k for k, v in current.items() if self.conditions.get(k) != v}
                | (self.conditions.keys() - current.keys())
            )
            shown = ", ".join(f"{k} {self.conditions.get(k)} (now {current.get(k)})" for k in changed)
            raise QuantailError(f"the starts were recorded under another protocol: {shown}.")
        for number, game in enumerate(self.games, 1):
            if not _replays_identically(env, game):
                raise QuantailError(
                    f"game {number} of the recording does not replay to the same frames: "
                    f"{self.env} has changed since it was recorded."
                )


def read_recording(path: str | Path) -> Recording:
    """Read a recording from its file."""
    try:
        first, *lines = Path(path).read_text(encoding="utf-8").splitlines() or [""]
        header = json.loads(first)
        if header["kind"] != KIND:
            raise ValueError(f"it holds {header['kind']}")
        check_schema(Path(path), header, SCHEMA)
        for name in ("env", "by", "hash", "checksum"):
            if not isinstance(header[name], str):
                raise ValueError(f"its {name} is {header[name]!r}")
        games = tuple(Game.from_dict(json.loads(line)) for line in lines)
        recording = Recording(header["env"], header["by"], dict(header["protocol"]), games)
        checksum, conditions = header["checksum"], header["hash"]
    except FileNotFoundError:
        raise QuantailError(f"there is no recording at {path}.") from None
    except (OSError, ValueError, OverflowError, KeyError, TypeError) as error:
        raise QuantailError(f"{path} is not a recording of `quantail play`: {damage(error)}.") from error
    if recording.checksum != checksum:
        raise QuantailError(
            f"{path} was changed or truncated after it was recorded: its checksum differs."
        )
    if recording.hash != conditions:
        raise QuantailError(f"{path} was changed: its protocol does not match its stored hash.")
    return recording


def draw_starts(recording: Recording, count: int, seed: int, limit: int = 0) -> list[Start]:
    """Sample start states uniformly from all recorded steps, without replacement, by a seed.

    The last step of a game is its end and is excluded, as are steps at or after `limit` (in frames).
    """
    states = [
        (game, length)
        for game in recording.games
        for length in range(1, min(len(game.actions), limit or len(game.actions)))
    ]
    if len(states) < count:
        raise QuantailError(
            f"the recording has {len(states):,} start states, but {count:,} are requested."
        )
    chosen = np.random.default_rng(seed).choice(len(states), size=count, replace=False)
    return [Start(game.seed, game.actions[:length]) for game, length in (states[i] for i in chosen)]


def _replays_identically(env: EnvSource, game: Game) -> bool:
    try:
        return played_marks(env, game.seed, game.actions) == game.marks
    except (ValueError, QuantailError):  # an action that the environment does not have
        return False


def played_marks(env: EnvSource, seed: int, actions: tuple[int, ...]) -> tuple[int, ...]:
    """Replay a game and return its checksums after every MARK_EVERY actions, and at its end."""
    player = make_player(env)
    player.reset(seed=seed)
    marks = []
    for begin in range(0, len(actions), MARK_EVERY):
        part = actions[begin : begin + MARK_EVERY]
        observation = player.family.human.advance(player, part)
        marks.append(observation_checksum(observation))
    player.close()
    return tuple(marks)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]

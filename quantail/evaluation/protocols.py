"""Protocols: under what conditions episodes are played. A score means nothing without its own."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np

from quantail.envs.make import Kind
from quantail.errors import QuantailError, did_you_mean
from quantail.settings import Settings

BUDGET = ("frames", "episodes")  # how long one looks, not what one looks at
LONGEST = 27_000  # steps after which an episode without any limit is cut
A_RECORDING = "a recording"  # where a protocol takes starts, until one is given


def whole_number(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much, or a sentence."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise QuantailError(f"{name} takes a whole number of at least {least}, not {value!r}.")
    return int(value)


def chance(name: str, value: Any) -> float:
    """A number from 0 to 1, or a sentence."""
    if isinstance(value, str | bool) or not np.isscalar(value) or not 0 <= float(value) <= 1:  # type: ignore[arg-type]
        raise QuantailError(f"{name} takes a number from 0 to 1, not {value!r}.")
    return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Protocol:
    """The conditions of an evaluation, and how many episodes or frames it looks at."""

    name: str
    no_ops: int = 0  # most frames of no-op before the agent plays
    sticky: float = 0.0  # chance, at each frame, that the last action is played again
    action_repeat: int = 1  # frames
    epsilon: float = 0.001
    max_frames: int = 0  # of a game, then it is cut; 0 is the environment's own limit
    starts: str = ""  # the recording that the starts are drawn from: its checksum and who played
    frames: int = 0  # whole episodes within so many; 0 counts episodes instead
    episodes: int = 30
    version: int = 1  # of what these words mean

    def __post_init__(self) -> None:
        for name, least in (
            ("no_ops", 0),
            ("action_repeat", 1),
            ("max_frames", 0),
            ("frames", 0),
            ("episodes", 1),
        ):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), least))
        object.__setattr__(self, "version", whole_number("version", self.version, 1))
        for name in ("name", "starts"):
            if not isinstance(getattr(self, name), str):
                raise QuantailError(f"{name} takes a text, not {getattr(self, name)!r}.")
        for name in ("sticky", "epsilon"):
            object.__setattr__(self, name, chance(name, getattr(self, name)))

    @property
    def hash(self) -> str:
        """The same for the same conditions, whatever they are called and however long one looks.

        Starts count as there or not: each game has a recording of its own.
        """
        conditions = {k: v for k, v in asdict(self).items() if k not in (*BUDGET, "name")}
        text = json.dumps(conditions | {"starts": bool(self.starts)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def label(self) -> str:
        """Name, version and hash."""
        return f"{self.name} v{self.version} ({self.hash})"

    @property
    def budget_steps(self) -> int:
        """Decisions that the budget of frames allows; 0 where episodes are counted."""
        return self.frames // self.action_repeat

    def changed(self, **conditions: Any) -> "Protocol":
        """The same with other conditions, which then stand in its name."""
        told = {k: v for k, v in conditions.items() if v != getattr(self, k)}
        words = " and ".join(f"{name} {value:g}" for name, value in told.items())
        return replace(self, name=f"{self.name} with {words}" if told else self.name, **told)

    def adapt(self, settings: Settings) -> Settings:
        """The agent's settings, with an environment as this protocol has it."""
        limit = self.max_frames // self.action_repeat
        named = ("no_ops", "sticky", "action_repeat")
        changes = {name: getattr(self, name) for name in named} | {"max_episode_steps": limit}
        return settings.with_changes(
            {name: value for name, value in changes.items() if value != getattr(settings, name)}
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"hash": self.hash}

    @classmethod
    def from_dict(cls, content: Any) -> "Protocol":
        """What `to_dict` gave; one that was changed since, so that its hash is another's, is refused."""
        known = {field.name for field in fields(cls)} | {"hash"}
        if not isinstance(content, dict) or "name" not in content:
            raise QuantailError(f"a protocol takes a name and conditions, not {content!r}.")
        if unknown := content.keys() - known:
            raise QuantailError(f"a protocol has no {', '.join(sorted(unknown))}.")
        protocol = cls(**{k: v for k, v in content.items() if k != "hash"})
        if content.get("hash", protocol.hash) != protocol.hash:
            raise QuantailError(
                f"the protocol {protocol.label} does not have the hash that it names, {content['hash']}"
            )
        return protocol

    def describe(self) -> str:
        """All of it in one line."""
        parts = [f"ε {self.epsilon:g}"]
        if self.starts:
            parts.append(f"starts drawn from {self.starts}")
        elif self.no_ops:
            parts.append(f"up to {self.no_ops} no-op frames")
        if self.sticky:
            parts.append(f"sticky actions {self.sticky:g}")
        if self.action_repeat > 1:
            parts.append(f"an action lasts {self.action_repeat} frames")
        own = f"the environment's own limit, at most {LONGEST:,} steps"
        parts.append(f"cut at {f'{self.max_frames:,} frames' if self.max_frames else own}")
        budget = f"whole episodes within {self.frames:,} frames, at least one"
        if not self.frames:
            budget = f"{self.episodes:,} {'episode' if self.episodes == 1 else 'episodes'}"
        return f"{self.label}: {', '.join(parts)}; {budget}"


ATARI = Protocol("", action_repeat=4, max_frames=108_000)

PROTOCOLS = {
    "no-op": replace(ATARI, name="no-op", no_ops=30, frames=500_000),
    "sticky": replace(ATARI, name="sticky", sticky=0.25, frames=500_000),
    "human-starts": replace(ATARI, name="human-starts", starts=A_RECORDING, episodes=100),
}

ABOUT = {
    "own": "as the run was evaluated in training",
    "no-op": "the paper's: up to 30 no-op frames, ε 0.001, 108,000 frames a game (ALE)",
    "sticky": "Machado et al. 2018: sticky actions 0.25, no no-ops, no life signal (ALE)",
    "human-starts": "from moments of games that a person played; the score counts from there",
}


def own_protocol(settings: Settings) -> Protocol:
    """What a run is evaluated under in training; called by a standard's name where it is that."""
    s = settings
    protocol = Protocol(
        "own",
        no_ops=s.no_ops,
        sticky=s.sticky,
        action_repeat=s.action_repeat,
        epsilon=s.evaluation_epsilon,
        max_frames=s.max_episode_steps * s.action_repeat,
        frames=s.evaluation_steps * s.action_repeat,
        episodes=s.evaluation_episodes,
    )
    name = next((known.name for known in PROTOCOLS.values() if known.hash == protocol.hash), "own")
    return replace(protocol, name=name)


def find_protocol(name: str, kind: Kind, settings: Settings) -> Protocol:
    """The protocol of this name, as it is for this kind of environment."""
    if name == "own":
        return own_protocol(settings)
    if not isinstance(name, str) or name not in PROTOCOLS:
        known = ", ".join(ABOUT)
        raise QuantailError(
            f"unknown protocol {name!r}: it takes {known}.{did_you_mean(str(name), ABOUT)}"
        )
    if kind == "atari":
        return PROTOCOLS[name]
    if name != "human-starts":
        raise QuantailError(f"protocol {name} is for ALE games: it takes own or human-starts here.")
    standard = PROTOCOLS[name]
    own = own_protocol(settings)
    return replace(own, name=name, starts=standard.starts, frames=0, episodes=standard.episodes)

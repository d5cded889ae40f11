"""Evaluation protocols: the conditions under which episodes are played and scores can be compared."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from quantail import registry
from quantail.config import Config
from quantail.envs.config import EnvironmentConfig
from quantail.envs.families import all_families
from quantail.envs.family import EnvFamily
from quantail.errors import QuantailError
from quantail.part_config import VALUES
from quantail.settings import shown
from quantail.text import counted
from quantail.validation import either, one_of, probability, string, whole_number, wrong

BUDGET = ("frames", "episodes")  # the length of an evaluation, not its conditions
LONGEST = 27_000  # steps after which an episode without a limit is truncated
CONDITIONS = ("no_ops", "sticky", "action_repeat")  # of environments, which every family has
A_RECORDING = "a recording"  # placeholder for `starts` until a recording is given


@dataclass(frozen=True)
class Protocol:
    """The conditions of an evaluation, and its budget of episodes or frames.

    Scores can be compared if their protocols have the same conditions, and so the same hash.

    Attributes:
        name: Its name.
        no_ops: Maximum number of no-op frames before the agent plays.
        sticky: Probability, at each frame, that the previous action is repeated.
        action_repeat: Number of frames for which an action is repeated.
        epsilon: Probability of a random action.
        max_frames: Number of frames after which an episode is truncated; 0 is the environment's own
            limit.
        starts: The recording from which start states are sampled: its checksum and player.
        frames: Budget of frames for whole episodes; 0 uses `episodes` instead.
        episodes: Number of episodes.
        version: Raised when the meaning of a field changes.
        settings: Other conditions of the environment's family.
    """

    name: str
    no_ops: int = 0  # maximum number of no-op frames before the agent plays
    sticky: float = 0.0  # probability, at each frame, that the previous action is repeated
    action_repeat: int = 1  # frames
    epsilon: float = 0.001
    max_frames: int = 0  # of an episode before truncation; 0 is the environment's own limit
    starts: str = ""  # the recording that starts are sampled from: its checksum and player
    frames: int = 0  # budget of frames for whole episodes; 0 uses `episodes` instead
    episodes: int = 30
    version: int = 1  # raised when the meaning of a field changes
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)  # others of the family

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
            string(name, getattr(self, name))
        for name in ("sticky", "epsilon"):
            object.__setattr__(self, name, probability(name, getattr(self, name)))
        object.__setattr__(self, "settings", _plain(self.settings))

    @property
    def hash(self) -> str:
        """Return a hash of the conditions, without the name and the budget.

        Of `starts`, it includes only whether there are any, because each game has its own recording.
        """
        conditions = {k: v for k, v in asdict(self).items() if k not in (*BUDGET, "name")}
        if not self.settings:
            del conditions["settings"]
        text = json.dumps(conditions | {"starts": bool(self.starts)}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def label(self) -> str:
        """Return the name with version and hash."""
        return f"{self.name} v{self.version} ({self.hash})"

    @property
    def budget_steps(self) -> int:
        """Return the budget in agent steps; 0 if the budget counts episodes."""
        return self.frames // self.action_repeat

    def changed(self, **conditions: Any) -> "Protocol":
        """Return the protocol with other conditions, which are added to its name."""
        changes = {k: v for k, v in conditions.items() if v != getattr(self, k)}
        words = " and ".join(f"{name} {value:g}" for name, value in changes.items())
        return replace(self, name=f"{self.name} with {words}" if changes else self.name, **changes)

    @property
    def conditions(self) -> dict[str, Any]:
        """Return the conditions that the family of the environment has to meet."""
        return {name: getattr(self, name) for name in CONDITIONS} | dict(self.settings)

    def limit(self, config: EnvironmentConfig) -> EnvironmentConfig:
        """Return the configuration with the limit of this protocol on the length of an episode."""
        return replace(config, max_episode_steps=self.max_frames // self.action_repeat)

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions with their hash, ready for JSON."""
        return asdict(self) | {"hash": self.hash}

    @classmethod
    def from_dict(cls, content: Any) -> "Protocol":
        """Restore a protocol from `to_dict`; refuse one whose content does not match its hash."""
        known = {one.name for one in fields(cls)} | {"hash"}
        if not isinstance(content, dict) or "name" not in content:
            raise QuantailError(f"a protocol needs a name and conditions, not {content!r}.")
        if unknown := content.keys() - known:
            raise QuantailError(f"a protocol has no field {', '.join(sorted(unknown))}.")
        protocol = cls(**{k: v for k, v in content.items() if k != "hash"})
        if content.get("hash", protocol.hash) != protocol.hash:
            raise QuantailError(
                f"the protocol {protocol.label} does not match its stored hash {content['hash']}."
            )
        return protocol

    def describe(self) -> str:
        """Return all conditions and the budget in words, after the name if the protocol has one."""
        return self.summary if self.name == "own" else f"{self.name}: {self.summary}"

    @property
    def summary(self) -> str:
        """Return all conditions and the budget in words."""
        random = f"random actions with probability {self.epsilon:g}" if self.epsilon else ""
        parts = [random or "no exploration"]
        if self.starts:
            parts.append(f"starts sampled from {self.starts}")
        elif self.no_ops:
            parts.append(f"up to {self.no_ops} no-op frames at the start")
        if self.sticky:
            parts.append(f"sticky actions with probability {self.sticky:g}")
        if self.action_repeat > 1:
            parts.append(f"each action repeated for {self.action_repeat} frames")
        parts += [f"{name} {shown(value)}" for name, value in self.settings.items()]
        length = counted(self.episodes, "episode")
        if self.frames:
            length = f"as many whole episodes as fit into {self.frames:,} frames, at least one"
        limit = f"{self.max_frames:,} frames" if self.max_frames else f"{LONGEST:,} steps"
        verb, them = ("end", "them") if self.frames or self.episodes > 1 else ("ends", "it")
        end = "" if self.max_frames else f"as the environment ends {them}, "
        return f"{', '.join(parts)}; {length}, which {verb} {end}after {limit} at the latest"


def _plain(settings: Any) -> dict[str, Any]:
    """Return settings of a family as JSON restores them, in the order of their names."""
    if not isinstance(settings, Mapping):
        raise wrong("settings", "a mapping of names to values", settings)
    plain = {name: tuple(one) if isinstance(one, list) else one for name, one in settings.items()}
    for name, value in plain.items():
        if type(value) not in VALUES:
            raise wrong(f"settings: {name}", "a number, a truth value, a text or a tuple", value)
    return dict(sorted(plain.items()))


ATARI = Protocol("", action_repeat=4, max_frames=108_000)

PROTOCOLS = {
    "no-op": replace(ATARI, name="no-op", no_ops=30, frames=500_000),
    "sticky": replace(ATARI, name="sticky", sticky=0.25, frames=500_000),
    "human-starts": replace(ATARI, name="human-starts", starts=A_RECORDING, episodes=100),
}

ABOUT = {
    "own": "the conditions under which the run was evaluated in training",
    "no-op": "the paper's: up to 30 no-op frames, epsilon 0.001, at most 108,000 frames per "
    "episode (ALE)",
    "sticky": "Machado et al. 2018: sticky actions 0.25, no no-op frames, no life-loss signal (ALE)",
    "human-starts": "start from states of recorded human games and count the score from there",
}


# The names that `protocol` takes. Under "own" stands only a name: the run decides its conditions.
NAMED = {"own": Protocol("own"), **PROTOCOLS}


def about_protocols() -> dict[str, str]:
    """Return what every protocol is about, built-in and registered ones, by name."""
    return {name: ABOUT.get(name) or one.summary for name, one in registry.parts("protocol").items()}


def own_protocol(family: EnvFamily, config: Config) -> Protocol:
    """Return the protocol of evaluations in training, under its standard name if it has one.

    `family` is that of the environment, with its settings.
    """
    evaluation, frames = config.evaluation, family.frames_per_step
    conditions = family.conditions()
    protocol = Protocol(
        "own",
        **{name: conditions.pop(name) for name in CONDITIONS},
        settings=conditions,
        epsilon=evaluation.evaluation_epsilon,
        max_frames=config.environment.max_episode_steps * frames,
        frames=evaluation.evaluation_steps * frames,
        episodes=evaluation.evaluation_episodes,
    )
    name = next((known.name for known in PROTOCOLS.values() if known.hash == protocol.hash), "own")
    return replace(protocol, name=name)


def find_protocol(name: str, family: EnvFamily, config: Config) -> Protocol:
    """Return the protocol with this name for environments of a family, which has its settings."""
    own = own_protocol(family, config)
    if name == "own":
        return own
    named = registry.parts("protocol")
    found: Protocol = replace(named[one_of("protocol", name, named)], name=name)
    if found.starts and family.refused(found.conditions):
        # Every environment can start from recorded states: the other conditions are then the run's own.
        return replace(own, name=name, starts=found.starts, frames=0, episodes=found.episodes)
    return taken_by(family, found)


def taken_by(family: EnvFamily, protocol: Protocol) -> Protocol:
    """Return a protocol with those settings of a family that it does not set itself.

    Raise an error if the family cannot meet its conditions.
    """
    refused = family.refused(protocol.conditions)
    if not refused:
        own = {k: v for k, v in family.conditions().items() if k not in CONDITIONS}
        return replace(protocol, settings=own | dict(protocol.settings))
    takers = [one.title for one in all_families() if not one.refused(protocol.conditions)]
    usable = [
        name
        for name, one in registry.parts("protocol").items()
        if name == "own" or one.starts or not family.refused(one.conditions)
    ]
    asked = " and ".join(f"{name} {shown(value)}" for name, value in refused.items())
    only = f"is for {either(takers)}" if takers else "is for no known environments"
    raise QuantailError(
        f"protocol {protocol.name} {only}, because it has {asked}: use {either(usable)} here."
    )

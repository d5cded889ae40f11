"""What the queue runs, and in which order."""

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Any

from quantail.errors import QuantailError

Settings = tuple[tuple[str, str], ...]  # names and values, as on the command line


@dataclass(frozen=True)
class Spec:
    """One run. Its id follows from its content, so a row of a table is matched by what it says."""

    env: str
    agent: str
    preset: str
    seed: int
    steps: int
    episodes: int  # of the final evaluation
    settings: Settings = ()

    @property
    def id(self) -> str:
        words = [self.env, self.agent, self.preset, self.seed, self.steps, self.episodes]
        text = "\n".join([*map(str, words), settings_text(tuple(sorted(self.settings)))])
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        return f"{self.agent} on {self.env}, seed {self.seed}"

    @property
    def flags(self) -> list[str]:
        """The settings as options of `quantail train`."""
        return [_flag(name, value) for name, value in self.settings]

    @property
    def evaluation_seed(self) -> int:
        """The seed of the episodes of the final evaluation, which training never plays."""
        return 1_000_000 + self.seed


@dataclass(frozen=True)
class Study:
    """One entry of the queue."""

    name: str
    title: str
    envs: tuple[str, ...]
    agents: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: int
    preset: str
    evaluation_every: int
    evaluation_episodes: int
    final_episodes: int
    settings: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    reported: bool = True
    background: bool = True  # False: a command of its own runs it
    threads: int = 1
    hours: float = 0.0  # of training, at most; 0 is no limit

    def runs(self) -> list[Spec]:
        """Return the runs in their order: seeds are outermost, so that any prefix is balanced."""
        combinations = [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]
        return [
            Spec(
                env,
                agent,
                self.preset,
                seed,
                self.steps,
                self.final_episodes,
                self._settings(combination),
            )
            for seed in self.seeds
            for combination in combinations
            for env in self.envs
            for agent in self.agents
        ]

    def _settings(self, combination: dict[str, Any]) -> Settings:
        evaluations = {
            "evaluation_every": self.evaluation_every,
            "evaluation_episodes": self.evaluation_episodes,
        }
        changed = {**self.settings, **combination, **evaluations}
        return tuple((name, value_text(value)) for name, value in changed.items())


@dataclass(frozen=True)
class Plan:
    """The studies of the queue, in their order."""

    studies: tuple[Study, ...]

    def background(self) -> list[tuple[Study, Spec]]:
        """Return every run of the queue once, in order, with the first study that has it."""
        found: dict[str, tuple[Study, Spec]] = {}
        for study in self.studies:
            if study.background:
                for spec in study.runs():
                    found.setdefault(spec.id, (study, spec))
        return list(found.values())

    def study(self, name: str) -> Study:
        for study in self.studies:
            if study.name == name:
                return study
        raise QuantailError(f"the queue has no study {name!r}.")


def value_text(value: Any) -> str:
    """Return a value of a setting as it stands on the command line and in the tables."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def settings_text(settings: Settings) -> str:
    return "; ".join(f"{name}={value}" for name, value in settings)


def parse_settings(text: str) -> Settings:
    """Return the settings of `settings_text`."""
    pairs = [pair.partition("=") for pair in text.split("; ")] if text else []
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(f"settings are NAME=VALUE; NAME=VALUE, not {text!r}")
    return tuple((name, value) for name, _, value in pairs)


def _flag(name: str, value: str) -> str:
    flag = name.replace("_", "-")
    if value in ("true", "false"):
        return f"--{flag}" if value == "true" else f"--no-{flag}"
    return f"--{flag}={value}"

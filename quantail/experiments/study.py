"""A study: a grid of runs as data, and the jobs that it comes to."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quantail.envs import default_preset, make
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.registry import Origin, modules_of
from quantail.risk import parse_risk
from quantail.settings import RISKS, Settings, shown
from quantail.training.attitude import attitude_of

Changes = Mapping[str, Any]

# One thread on a CPU, unless a study says otherwise: the same bytes on a laptop and on a cluster.
EVERYWHERE: Changes = {"threads": 1, "device": "cpu"}
PLAIN = ("agent", "risk")  # settings whose value tells enough without their name


@dataclass(frozen=True)
class Variant:
    """One place on an axis, or a reference beside the grid: a name, and the settings that it sets."""

    name: str
    settings: Changes
    seeds: int | None = None  # where it takes fewer or more than the study

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "settings": dict(self.settings), "seeds": self.seeds}


@dataclass(frozen=True)
class Axis:
    """A choice that the study makes in each of several ways."""

    name: str
    variants: tuple[Variant, ...]

    def label(self, variant: str) -> str:
        """A place on the axis in words."""
        named = any(one.settings.keys() != {self.name} for one in self.variants)
        return variant if named or self.name in PLAIN else f"{self.name} {variant}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "variants": [one.to_dict() for one in self.variants]}


@dataclass(frozen=True)
class Config:
    """One combination of the grid, or a reference beside it."""

    label: str
    places: tuple[str, ...]  # on each axis; empty for a reference
    changes: Changes
    seeds: int

    @property
    def reference(self) -> bool:
        return not self.places


@dataclass(frozen=True)
class Job:
    """One run of a study, its settings composed and checked."""

    name: str
    env: str
    preset: str
    config: Config
    seed: int
    changes: Changes  # what differs from the preset and the agent
    settings: Settings

    @property
    def frames(self) -> int:
        return self.settings.steps * self.settings.action_repeat


@dataclass(frozen=True)
class Study:
    """What a study is: the grid, the budget, the seeds and the figure."""

    name: str
    title: str
    figure: str
    games: tuple[str, ...]
    seeds: int
    grid: tuple[Axis, ...]
    references: tuple[Variant, ...] = ()
    settings: Changes = field(default_factory=dict)  # of every run
    preset: str = ""  # what fits each game where empty
    window: float = 0.1  # share of training that counts as early, and as late
    preferred: Changes = field(default_factory=dict)  # the combination that figures mark
    origin: Origin | None = field(default=None, compare=False)  # its file; not part of what it is

    def configs(self) -> Iterator[Config]:
        """Every combination of the grid, the last axis fastest, then the references."""
        for places in itertools.product(*(axis.variants for axis in self.grid)):
            if not places:
                continue
            own = [one.seeds for one in places if one.seeds is not None]
            label = ", ".join(axis.label(one.name) for axis, one in zip(self.grid, places, strict=True))
            changes = {k: v for one in places for k, v in one.settings.items()}
            yield Config(label, tuple(one.name for one in places), changes, min(own, default=self.seeds))
        for one in self.references:
            seeds = self.seeds if one.seeds is None else one.seeds
            yield Config(one.name, (), one.settings, seeds)

    def jobs(self) -> tuple[Job, ...]:
        """Every run of the study; a combination that cannot be is named."""
        jobs: dict[str, Job] = {}
        for config, env in itertools.product(self.configs(), self.games):
            if self.origin is not None:
                # Even where the id is registered here: each run imports the module in its own process.
                self.origin.require_of(env)
            fitting = default_preset(env)
            preset = self.preset or fitting
            changes = {**EVERYWHERE, **self.settings, **config.changes}
            try:
                settings = compose(preset, changes, base=fitting)
                attitude_of(settings, parse_risk(settings.risk, self.origin), self.origin)
            except QuantailError as error:
                raise QuantailError(f"study {self.name}, {config.label} on {env}: {error}") from error
            for seed in range(config.seeds):
                name = _slug(env, config, self.grid, seed)
                if name in jobs:
                    raise QuantailError(
                        f"study {self.name}: {jobs[name].config.label} on {jobs[name].env} and "
                        f"{config.label} on {env} would both be called {name}."
                    )
                seeded = settings.with_changes({"seed": seed})
                jobs[name] = Job(name, env, preset, config, seed, {**changes, "seed": seed}, seeded)
        return tuple(jobs.values())

    def trusting(self, modules: frozenset[str]) -> "Study":
        """Return the study with more modules that its file may name."""
        if self.origin is None:
            return self
        return replace(self, origin=replace(self.origin, trusted=self.origin.trusted | modules))

    def modules(self) -> frozenset[str]:
        """Return the modules of all the environments and risk measures that the study names."""
        changes = [self.settings, *(config.changes for config in self.configs())]
        return modules_of([*self.games, *(one.get(name) for one in changes for name in RISKS)])

    def with_seeds_of(self, other: "Study") -> "Study":
        """This study, no combination with fewer seeds than in the other, which has the same grid."""
        both = zip(self.configs(), other.configs(), strict=True)
        most = [replace(mine, seeds=max(mine.seeds, theirs.seeds)) for mine, theirs in both]

        def larger(mine: Variant, theirs: Variant, users: Sequence[Config]) -> Variant:
            if mine.seeds is None and theirs.seeds is None:
                return mine
            return replace(mine, seeds=max(one.seeds for one in users))

        grid = tuple(
            Axis(
                axis.name,
                tuple(
                    larger(a, b, [one for one in most if one.places and one.places[place] == a.name])
                    for a, b in zip(axis.variants, beside.variants, strict=True)
                ),
            )
            for place, (axis, beside) in enumerate(zip(self.grid, other.grid, strict=True))
        )
        references = tuple(
            larger(a, b, [one for one in most if one.reference and one.label == a.name])
            for a, b in zip(self.references, other.references, strict=True)
        )
        return replace(self, seeds=max(self.seeds, other.seeds), grid=grid, references=references)

    def check(self) -> tuple[Job, ...]:
        """The jobs, after each game was made once, and each combination once."""
        jobs = self.jobs()
        once: dict[str, Job] = {}
        for job in jobs:
            once.setdefault(f"game {job.env}", job)
            once.setdefault(f"config {job.config.label}", job)
        for job in {one.name: one for one in once.values()}.values():
            try:
                make(job.env, job.settings).close()
            except QuantailError as error:
                raise QuantailError(
                    f"study {self.name}, {job.config.label} on {job.env}: {error}"
                ) from error
        return jobs

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "figure": self.figure,
            "games": list(self.games),
            "seeds": self.seeds,
            "grid": [axis.to_dict() for axis in self.grid],
            "references": [one.to_dict() for one in self.references],
            "settings": dict(self.settings),
            "preset": self.preset,
            "window": self.window,
            "preferred": dict(self.preferred),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], origin: Origin | None = None) -> "Study":
        """What `to_dict` gave; `origin` is the file that it was read from."""
        return cls(
            **{
                **content,
                "origin": origin,
                "games": tuple(content["games"]),
                "grid": tuple(
                    Axis(axis["name"], tuple(Variant(**one) for one in axis["variants"]))
                    for axis in content["grid"]
                ),
                "references": tuple(Variant(**one) for one in content["references"]),
            }
        )

    def identity(self) -> dict[str, Any]:
        """What makes it this study and no other: all but how many seeds it has and how it is drawn."""
        content = self.to_dict()
        for name in ("title", "seeds", "figure", "window", "preferred"):
            del content[name]
        for one in [*(v for axis in content["grid"] for v in axis["variants"]), *content["references"]]:
            del one["seeds"]
        return content

    @property
    def hash(self) -> str:
        """A short form of the identity."""
        plain = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:12]


def value_name(value: Any) -> str:
    """A setting's value as the name of a place on an axis."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return shown(value).replace(",", "") if isinstance(value, int | float) else str(value)


def _slug(env: str, config: Config, grid: tuple[Axis, ...], seed: int) -> str:
    """A name for a folder, the same each time and readable."""
    game = re.sub(r"-v\d+$", "", env.rpartition(":")[2]).lower()
    if config.reference:
        words = [config.label]
    else:
        words = [axis.label(place) for axis, place in zip(grid, config.places, strict=True)]
    # `:` becomes `_` first, so that the sign of wang:-0.75 stays apart.
    plain = (re.sub(r"[^a-z0-9._-]+", "-", word.lower().replace(":", "_")) for word in (game, *words))
    parts = [word.strip("-") for word in plain]
    return "-".join([*parts, f"s{seed}"])

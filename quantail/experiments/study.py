"""A study: a grid of runs described as data, and the jobs it expands to."""

import hashlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from quantail import registry
from quantail.config import PARTS, RISKS, Changes, Config
from quantail.envs import find_family, make
from quantail.envs.families import configured, require_trusted_env
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.risk import parse_risk
from quantail.settings import shown
from quantail.trust import Origin, modules_of

# Defaults of every study: one CPU thread gives identical results on a laptop and on a cluster.
STUDY_DEFAULTS: Changes = {"threads": 1, "device": "cpu"}
UNNAMED = ("agent", "risk")  # settings whose value is clear without their name


@dataclass(frozen=True)
class Variant:
    """A value of an axis, or a reference outside the grid: a name and the settings it changes."""

    name: str
    settings: Changes
    seeds: int | None = None  # if it differs from the study's number

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "settings": dict(self.settings), "seeds": self.seeds}


@dataclass(frozen=True)
class Axis:
    """An axis of the grid: a choice with several variants."""

    name: str
    variants: tuple[Variant, ...]

    def label(self, variant: str) -> str:
        """Return the label of a variant of this axis."""
        named = any(one.settings.keys() != {self.name} for one in self.variants)
        return variant if named or self.name in UNNAMED else f"{self.name} {variant}"

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "variants": [one.to_dict() for one in self.variants]}


@dataclass(frozen=True)
class Combination:
    """One combination of the grid, or a reference outside it."""

    label: str
    places: tuple[str, ...]  # name of the variant on each axis; empty for a reference
    changes: Changes
    seeds: int

    @property
    def reference(self) -> bool:
        return not self.places


@dataclass(frozen=True)
class Job:
    """One run of a study, with its final settings."""

    name: str
    env: str
    preset: str
    combination: Combination
    seed: int
    changes: Changes  # settings that differ from the preset and the agent
    config: Config
    frames_per_step: int

    @property
    def frames(self) -> int:
        return self.config.run.steps * self.frames_per_step


@dataclass(frozen=True)
class Study:
    """The definition of a study: the grid, the budget, the seeds and the figure.

    Attributes:
        name: Short name, which is that of its folder.
        title: What it shows.
        figure: The kind of figure.
        games: Ids of the environments.
        seeds: Number of seeds for each combination.
        grid: The axes, whose combinations are trained.
        references: Further agents to compare with.
        settings: Settings of every run.
        preset: The preset of every run; if empty, the preset for each game.
        window: Fraction of training that counts as early, and as late.
        preferred: The combination that figures highlight.
        origin: The file from which it was read.
    """

    name: str
    title: str
    figure: str
    games: tuple[str, ...]
    seeds: int
    grid: tuple[Axis, ...]
    references: tuple[Variant, ...] = ()
    settings: Changes = field(default_factory=dict)  # of every run
    preset: str = ""  # if empty, the preset for each game
    window: float = 0.1  # fraction of training that counts as early, and as late
    preferred: Changes = field(default_factory=dict)  # the combination highlighted in figures
    origin: Origin | None = field(default=None, compare=False)  # the file it was read from

    def configs(self) -> Iterator[Combination]:
        """Yield every combination of the grid, the last axis varying fastest, then the references."""
        for variants in itertools.product(*(axis.variants for axis in self.grid)):
            if not variants:
                continue
            own = [one.seeds for one in variants if one.seeds is not None]
            label = ", ".join(
                axis.label(one.name) for axis, one in zip(self.grid, variants, strict=True)
            )
            changes = {k: v for one in variants for k, v in one.settings.items()}
            yield Combination(
                label, tuple(one.name for one in variants), changes, min(own, default=self.seeds)
            )
        for one in self.references:
            seeds = self.seeds if one.seeds is None else one.seeds
            yield Combination(one.name, (), one.settings, seeds)

    def jobs(self) -> tuple[Job, ...]:
        """Return every run of the study; an error names the invalid combination."""
        jobs: dict[str, Job] = {}
        for combination, env in itertools.product(self.configs(), self.games):
            if self.origin is not None:
                # Even if the id is registered here: each run imports the module in its own process.
                require_trusted_env(env, self.origin)
            family = find_family(env)
            preset = self.preset or family.preset
            changes = {**STUDY_DEFAULTS, **self.settings, **combination.changes}
            try:
                for kind in PARTS:
                    if kind in changes and self.origin is not None:
                        registry.admit(kind, changes[kind], self.origin)
                config = compose(preset, changes, base=family.preset, family=family.name)
                frames = configured(family, config.environment).frames_per_step
                config.risk.measures(parse_risk(config.risk.risk, self.origin), self.origin)
            except QuantailError as error:
                raise QuantailError(
                    f"study {self.name}, {combination.label} on {env}: {error}"
                ) from error
            for seed in range(combination.seeds):
                name = _slug(env, combination, self.grid, seed)
                if name in jobs:
                    raise QuantailError(
                        f"study {self.name}: {jobs[name].combination.label} on {jobs[name].env} and "
                        f"{combination.label} on {env} would both be called {name}."
                    )
                seeded = config.replace(seed=seed)
                changed = {**changes, "seed": seed}
                jobs[name] = Job(name, env, preset, combination, seed, changed, seeded, frames)
        return tuple(jobs.values())

    def trusting(self, modules: frozenset[str]) -> "Study":
        """Return the study with additional modules that its file may name."""
        if self.origin is None:
            return self
        return replace(self, origin=replace(self.origin, trusted=self.origin.trusted | modules))

    def modules(self) -> frozenset[str]:
        """Return the modules of all environments, parts and risk measures that the study names."""
        changes = [self.settings, *(one.changes for one in self.configs())]
        names = (*RISKS, *PARTS)
        return modules_of([*self.games, *(one.get(name) for one in changes for name in names)])

    def with_seeds_of(self, other: "Study") -> "Study":
        """Return this study with at least the seeds per combination of another with the same grid."""
        both = zip(self.configs(), other.configs(), strict=True)
        most = [replace(mine, seeds=max(mine.seeds, theirs.seeds)) for mine, theirs in both]

        def larger(mine: Variant, theirs: Variant, users: Sequence[Combination]) -> Variant:
            if mine.seeds is None and theirs.seeds is None:
                return mine
            return replace(mine, seeds=max(one.seeds for one in users))

        grid = tuple(
            Axis(
                axis.name,
                tuple(
                    larger(a, b, [one for one in most if one.places and one.places[index] == a.name])
                    for a, b in zip(axis.variants, counterpart.variants, strict=True)
                ),
            )
            for index, (axis, counterpart) in enumerate(zip(self.grid, other.grid, strict=True))
        )
        references = tuple(
            larger(a, b, [one for one in most if one.reference and one.label == a.name])
            for a, b in zip(self.references, other.references, strict=True)
        )
        return replace(self, seeds=max(self.seeds, other.seeds), grid=grid, references=references)

    def check(self) -> tuple[Job, ...]:
        """Return the jobs, after creating the environment of each game and of each combination once."""
        jobs = self.jobs()
        once: dict[str, Job] = {}
        for job in jobs:
            once.setdefault(f"game {job.env}", job)
            once.setdefault(f"config {job.combination.label}", job)
        for job in {one.name: one for one in once.values()}.values():
            try:
                make(job.env, job.config.environment).close()
            except QuantailError as error:
                raise QuantailError(
                    f"study {self.name}, {job.combination.label} on {job.env}: {error}"
                ) from error
        return jobs

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain values, ready for JSON."""
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
        """Restore a study from `to_dict`; `origin` is the file it was read from."""
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
        """Return what identifies the study: everything but the number of seeds and the figure."""
        content = self.to_dict()
        for name in ("title", "seeds", "figure", "window", "preferred"):
            del content[name]
        for one in [*(v for axis in content["grid"] for v in axis["variants"]), *content["references"]]:
            del one["seeds"]
        return content

    @property
    def hash(self) -> str:
        """Return a short hash of the identity."""
        plain = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(plain.encode()).hexdigest()[:12]


def value_name(value: Any) -> str:
    """Return the name of a variant that stands for a value of a setting."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return shown(value).replace(",", "") if isinstance(value, int | float) else str(value)


def _slug(env: str, combination: Combination, grid: tuple[Axis, ...], seed: int) -> str:
    """Return a stable, readable folder name for a run."""
    game = re.sub(r"-v\d+$", "", env.rpartition(":")[2]).lower()
    if combination.reference:
        words = [combination.label]
    else:
        words = [axis.label(variant) for axis, variant in zip(grid, combination.places, strict=True)]
    # `:` becomes `_` first, so that the sign of wang:-0.75 is preserved.
    plain = (re.sub(r"[^a-z0-9._-]+", "-", word.lower().replace(":", "_")) for word in (game, *words))
    parts = [word.strip("-") for word in plain]
    return "-".join([*parts, f"s{seed}"])

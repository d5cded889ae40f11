"""The finished runs of the plan, grouped as the page shows them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from quantail.evaluation.games import game_of
from quantail.evaluation.published import Source, published_curves
from quantail.evaluation.scores import Matrix
from tools.results.plan import Plan, Settings, Study
from tools.results.table import Curve, RunRow

Key = tuple[str, str, Settings]  # environment, agent, combination of the grid
REFERENCE = ("minatar-paper", "DQN", 5_000_000)  # source, agent and frames of a normalised score of 1
SHOWN = (500_000, 1_000_000, 5_000_000)  # frames of published curves


@dataclass(frozen=True)
class Section:
    """Studies with the same title, which are one table and one figure."""

    title: str
    studies: tuple[Study, ...]
    planned: dict[Key, int]  # number of seeds
    runs: dict[Key, list[RunRow]]  # finished, in the order of their seeds
    curves: dict[str, Curve]  # by the ids of runs

    @cached_property
    def envs(self) -> list[str]:
        return _unique(env for study in self.studies for env in study.envs)

    @cached_property
    def planned_agents(self) -> list[str]:
        return _unique(agent for study in self.studies for agent in study.agents)

    @cached_property
    def agents(self) -> list[str]:
        """The agents that have a finished run."""
        having = {key[1] for key, rows in self.runs.items() if rows}
        return [agent for agent in self.planned_agents if agent in having]

    @cached_property
    def combinations(self) -> list[Settings]:
        return _unique(key[2] for key in self.planned)

    @property
    def reported(self) -> bool:
        return all(study.reported for study in self.studies)

    @property
    def rows(self) -> list[RunRow]:
        return [row for rows in self.runs.values() for row in rows]

    @property
    def is_grid(self) -> bool:
        return any(study.grid for study in self.studies)

    def of(self, env: str, agent: str, combination: Settings = ()) -> list[RunRow]:
        return self.runs.get((env, agent, combination), [])

    def matrix(self, agent: str) -> Matrix | None:
        """Return the final scores of an agent, [seeds, games]; None if a game has none.

        Every game counts with the same number of seeds, the first ones.
        """
        seeds = min(len(self.of(env, agent)) for env in self.envs)
        if not seeds:
            return None
        return np.array([[row.mean for row in self.of(env, agent)[:seeds]] for env in self.envs]).T

    def random(self, env: str) -> float:
        """Return the mean return of random play, from the evaluations before training."""
        points = [
            point
            for (game, _, _), rows in self.runs.items()
            for row in rows
            for point in self.curves[row.id]
            if game == env and point.policy == "random"
        ]
        episodes = sum(point.episodes for point in points)
        return sum(p.mean * p.episodes for p in points) / episodes if episodes else float("nan")

    def normalised(self, agent: str) -> Matrix | None:
        """Return scores where 0 is random play and 1 the reference; None where there is none."""
        scores = self.matrix(agent)
        references = [reference(env) for env in self.envs]
        if scores is None or None in references:
            return None
        low = np.array([self.random(env) for env in self.envs])
        normalised: Matrix = (scores - low) / (np.array(references, dtype=float) - low)
        return normalised


def sections(plan: Plan, rows: dict[str, RunRow], curves: dict[str, Curve]) -> list[Section]:
    """Group the plan by the titles of its studies, in their order."""
    titles = _unique(study.title for study in plan.studies)
    found = []
    for title in titles:
        studies = tuple(study for study in plan.studies if study.title == title)
        planned: dict[Key, int] = {}
        runs: dict[Key, list[RunRow]] = {}
        for study in studies:
            for spec in study.runs():
                own = tuple(pair for pair in spec.settings if pair[0] in study.grid)
                key = (spec.env, spec.agent, own)
                planned[key] = planned.get(key, 0) + 1
                runs.setdefault(key, []).extend([rows[spec.id]] if spec.id in rows else [])
        for found_rows in runs.values():
            found_rows.sort(key=lambda row: row.seed)
        found.append(Section(title, studies, planned, runs, curves))
    return found


def published(env: str) -> list[tuple[Source, str, int, float]]:
    """Return published scores of a game of MinAtar: source, agent, frames and score."""
    game = game_of(env)
    if not game.startswith("minatar/"):
        return []
    return [
        (curve.source, curve.agent, int(frames), float(score))
        for curve in published_curves(game)
        if (curve.source.name, curve.agent) == REFERENCE[:2]
        for frames, score in zip(curve.frames, curve.scores, strict=True)
        if int(frames) in SHOWN
    ]


def reference(env: str) -> float | None:
    """Return the published score that counts as 1, if the game has one."""
    for source, agent, frames, score in published(env):
        if (source.name, agent, frames) == REFERENCE:
            return score
    return None


def _unique(items: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(items))

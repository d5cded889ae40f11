"""Single states, played on from many times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.acting.agent import Agent
from quantail.envs.adapt import Adapter
from quantail.envs.worlds import ExactLaw
from quantail.evaluation.calibration.play import (
    Trail,
    checksum,
    discounted,
    horizon,
    patience,
    rest_of,
    take,
)
from quantail.evaluation.calibration.ranks import Array
from quantail.risk import RiskMeasure

FEW = 3  # continuations without a draw that agree: then there is no chance
REDRAWN = 200  # samples of a true law


@dataclass(frozen=True)
class Spot:
    """One state, played on from many times; without what could not be compared, and why."""

    episode: int
    step: int
    predicted: float  # mean
    played: float | None = None  # mean
    distance: float | None = None  # 1-Wasserstein, predicted to played
    noise: float | None = None  # the mean distance that as many draws of a true law have
    noise_high: float | None = None  # and that which 95 % of them do not pass
    remark: str = ""


class _RefusedError(Exception):
    """Why a state cannot be played on from."""


def play_on(
    agent: Agent,
    lane: Adapter,
    risk: RiskMeasure,
    trails: Sequence[Trail],
    states: int,
    continuations: int,
    seed: int,
) -> tuple[Spot, ...]:
    """Some states, each as likely as any other, played on from under fresh luck."""
    generator = np.random.default_rng([seed, 2**20])
    where = np.cumsum([len(trail.returns) for trail in trails])  # steps up to each trail's end
    chosen = generator.choice(where[-1], size=min(states, where[-1]), replace=False)
    spots = []
    for number in sorted(chosen):
        index = int(np.searchsorted(where, number, side="right"))
        trail = trails[index]
        step = int(number - where[index] + len(trail.returns))
        spots.append(_spot(agent, lane, risk, trail, step, continuations, generator))
    return tuple(spots)


def _spot(
    agent: Agent,
    lane: Adapter,
    risk: RiskMeasure,
    trail: Trail,
    step: int,
    continuations: int,
    generator: np.random.Generator,
) -> Spot:
    law = trail.laws[step]
    place = (trail.episode, step, float(law.mean()))
    returns: list[float] = []
    chance = False
    try:
        for _ in range(continuations):
            luck = int(generator.integers(2**31))
            returns.append(_continue(agent, lane, risk, trail, step, luck))
            chance = chance or lane.chance_drawn() or returns[-1] != returns[0]
            if len(returns) == FEW and not chance:
                return Spot(*place, played=returns[0], remark="no chance from here on")
    except _RefusedError as reason:
        return Spot(*place, remark=str(reason))
    played = np.array(returns)
    noise, noise_high = noise_of_draws(law, continuations, generator)
    return Spot(
        *place,
        played=float(played.mean()),
        distance=ExactLaw.of(law).distance(ExactLaw.of(played)),
        noise=noise,
        noise_high=noise_high,
    )


def _continue(
    agent: Agent, lane: Adapter, risk: RiskMeasure, trail: Trail, step: int, luck: int
) -> float:
    """The return of playing on from a step, the same action first, with other luck."""
    observation, _ = lane.reset(seed=trail.seed)
    for seen, action in zip(trail.seen[:step], trail.actions[:step], strict=True):
        _require_same(observation, seen)
        observation, *_ = lane.step(action)
    _require_same(observation, trail.seen[step])
    lane.reseed(luck)
    action, rewards = trail.actions[step], []
    discount = agent.settings.discount
    for _ in range(patience(discount)):
        came = take(agent, lane, action)
        rewards.append(came.reward)
        if came.ends:
            return float(discounted(rewards, discount)[0])
        if came.cut:
            raise _RefusedError("the environment itself cuts episodes")
        action = int(agent.act(came.observation, risk))
    if patience(discount) < horizon(discount):
        raise _RefusedError("no end came in sight")
    rest = rest_of(agent, came.observation, risk)
    return float(discounted(rewards, discount, rest=rest)[0])


def _require_same(observation: NDArray[Any], seen: int) -> None:
    if checksum(observation) != seen:
        raise _RefusedError("the same seed and actions led elsewhere")


def noise_of_draws(law: Array, count: int, generator: np.random.Generator) -> tuple[float, float]:
    """The distance of so many draws of a law from the law itself: its mean, and its 95 % point."""
    own = ExactLaw.of(law)
    apart = [own.distance(ExactLaw.of(generator.choice(law, count))) for _ in range(REDRAWN)]
    return float(np.mean(apart)), float(np.quantile(apart, 0.95))

"""Playing with an agent and comparing what it predicted with what came."""

from collections.abc import Sequence

import numpy as np

from quantail.acting.agent import Agent, Risk
from quantail.envs import EnvSource, make
from quantail.envs.limits import take_off_limit
from quantail.envs.make import require_fresh
from quantail.errors import QuantailError
from quantail.evaluation.calibration.continuations import Spot, play_on
from quantail.evaluation.calibration.play import Trail, first_steps, known_steps, play
from quantail.evaluation.calibration.ranks import even_noise, grain, rank
from quantail.evaluation.calibration.result import Calibration
from quantail.evaluation.protocols import LONGEST, whole_number
from quantail.risk import RiskMeasure, parse_risk
from quantail.settings import Settings


def calibrate(
    agent: Agent,
    env: EnvSource | None = None,
    *,
    episodes: int = 100,
    states: int = 4,
    continuations: int = 100,
    risk: Risk | None = None,
    seed: int = 1,
) -> Calibration:
    """Play episodes under the agent's own policy, and compare what it predicted with what came.

    Rewards are those that the agent learns from: clipped, and a lost life is an end, where training had
    it so. `states` of the episodes are played on from `continuations` times each.
    """
    if not isinstance(agent, Agent):
        raise QuantailError("agent takes what quantail.load or quantail.train returns.")
    episodes, states = whole_number("episodes", episodes, 2), whole_number("states", states, 0)
    continuations, seed = (
        whole_number("continuations", continuations, 2),
        whole_number("seed", seed, 0),
    )
    source = agent.env if env is None else env
    measure = agent.risk if risk is None else parse_risk(risk)
    lane = make(source, agent.settings)
    require_fresh(source)
    limit = min(take_off_limit(lane) or LONGEST, LONGEST)
    try:
        seeds = [int(np.random.default_rng([seed, i]).integers(2**31)) for i in range(episodes)]
        played = [play(agent, lane, measure, i, each, limit) for i, each in enumerate(seeds)]
        trails, cuts = _known(played, agent.settings.discount, lane.name)
        spots = play_on(agent, lane, measure, trails, states, continuations, seed) if states else ()
    finally:
        lane.close()
    remarks = [*cuts, *remarks_on(agent.settings, measure)]
    return compared(lane.name, measure, trails, spots, remarks, checkpoint=agent.checkpoint, seed=seed)


def compared(
    env: str,
    risk: RiskMeasure,
    trails: Sequence[Trail],
    spots: Sequence[Spot] = (),
    remarks: Sequence[str] = (),
    *,
    checkpoint: int = 0,
    seed: int = 1,
) -> Calibration:
    """Ranks of the returns that came in the laws that were predicted."""
    means, returns = (
        np.concatenate([trail.means for trail in trails]),
        np.concatenate([trail.returns for trail in trails]),
    )
    smallest = grain(means, returns)
    noise = even_noise(len(returns), np.random.default_rng(seed))
    parts = np.split(noise, np.cumsum([len(trail.returns) for trail in trails])[:-1])
    ranks = tuple(
        rank(trail.laws, trail.returns, smallest, part)
        for trail, part in zip(trails, parts, strict=True)
    )
    return Calibration(
        env, risk, checkpoint, seed, tuple(trails), smallest, ranks, tuple(spots), tuple(remarks)
    )


def _known(trails: Sequence[Trail], discount: float, name: str) -> tuple[list[Trail], list[str]]:
    """The trails as far as their returns are known, and what to say of it."""
    count = known_steps(trails, discount)
    if count is None:
        return list(trails), []
    cut = [trail.cut_at for trail in trails if trail.cut_at is not None]
    kept = [first_steps(trail, count) for trail in trails] if count else []
    told = f"{len(cut)} of {len(trails)} episodes had not ended after {min(cut):,} steps"
    if len(kept) < 2:
        raise QuantailError(
            f"{name}: {told}, and at discount {discount:g} what is not seen then weighs too much: "
            "no return is known without choosing the short ones."
        )
    told += ": of the little that was not played, the predicted mean stands in"
    steps = max(len(trail.returns) for trail in trails)
    return kept, [told if count >= steps else f"{told}; the first {count:,} steps of each count"]


def remarks_on(settings: Settings, risk: RiskMeasure) -> list[str]:
    """Why the learned law may rightly differ from what the played policy brings."""
    remarks = []
    target = settings.target_risk or settings.risk
    matters = settings.head != "expected"
    if not matters:
        remarks.append(f"{settings.agent} knows the mean alone: look at the bias, not at the law")
    if settings.munchausen:
        remarks.append(
            "the law contains the Munchausen terms, so it is not that of the rewards alone: it need not "
            "agree with what came"
        )
    if matters and str(risk) != target:
        remarks.append(
            f"the law is that of the policy under {target}, and the policy under {risk} played: they "
            "need not agree"
        )
    if settings.n_step > 1:
        remarks.append(
            f"with n_step {settings.n_step} the first rewards of a target are the exploring policy's, "
            "and are in the law; the greedy policy played"
        )
    if settings.life_loss_ends:
        remarks.append("a lost life ends a return, as in training; intervals are over whole games")
    return remarks

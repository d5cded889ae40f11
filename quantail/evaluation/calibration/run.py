"""Play with an agent and compare its predicted return distributions with the measured returns."""

from collections.abc import Sequence

import numpy as np

from quantail.agents.agent import Agent, Risk, require_agent
from quantail.config import Config
from quantail.envs import EnvSource, make
from quantail.envs.limits import take_off_limit
from quantail.envs.source import require_fresh
from quantail.errors import QuantailError
from quantail.evaluation.calibration.continuations import StateProbe, probe_states
from quantail.evaluation.calibration.play import Rollout, first_steps, known_steps, play_episode
from quantail.evaluation.calibration.ranks import rank, stratified_normal, tolerance
from quantail.evaluation.calibration.result import Calibration
from quantail.evaluation.protocols import LONGEST
from quantail.risk import RiskMeasure, parse_risk
from quantail.validation import whole_number


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
    """Play episodes with the agent's policy and compare predicted distributions with measured returns.

    Rewards are those that the agent is trained on: they are clipped, and a lost life ends a return, if
    training does so.

    Args:
        agent: The agent.
        env: Another environment than the agent's own.
        episodes: Number of episodes, at least 2.
        states: Number of visited states from which further episodes are played.
        continuations: Number of those episodes for each state, at least 2.
        risk: Risk measure of the policy; by default the agent's own.
        seed: Seed of the episodes.
    """
    require_agent(agent)
    episodes = whole_number("episodes", episodes, 2)
    states = whole_number("states", states, 0)
    continuations = whole_number("continuations", continuations, 2)
    seed = whole_number("seed", seed, 0)
    source = agent.env if env is None else env
    measure = agent.risk if risk is None else parse_risk(risk)
    adapter = make(source, agent.config.environment)
    require_fresh(source)
    limit = min(take_off_limit(adapter) or LONGEST, LONGEST)
    try:
        seeds = [int(np.random.default_rng([seed, i]).integers(2**31)) for i in range(episodes)]
        played = [play_episode(agent, adapter, measure, i, each, limit) for i, each in enumerate(seeds)]
        rollouts, remarks = _with_known_returns(played, agent.config.learner.discount, adapter.name)
        probes = (
            probe_states(agent, adapter, measure, rollouts, states, continuations, seed)
            if states
            else ()
        )
    finally:
        adapter.close()
    remarks += [*mismatch_remarks(agent.config, measure), *adapter.family.remarks()]
    return build_calibration(
        adapter.name, measure, rollouts, probes, remarks, checkpoint=agent.checkpoint, seed=seed
    )


def build_calibration(
    env: str,
    risk: RiskMeasure,
    rollouts: Sequence[Rollout],
    probes: Sequence[StateProbe] = (),
    remarks: Sequence[str] = (),
    *,
    checkpoint: int = 0,
    seed: int = 1,
) -> Calibration:
    """Rank the measured returns within the distributions that were predicted for them."""
    means, returns = (
        np.concatenate([rollout.means for rollout in rollouts]),
        np.concatenate([rollout.returns for rollout in rollouts]),
    )
    smoothing = tolerance(means, returns)
    noise = stratified_normal(len(returns), np.random.default_rng(seed))
    parts = np.split(noise, np.cumsum([len(rollout.returns) for rollout in rollouts])[:-1])
    ranks = tuple(
        rank(rollout.distributions, rollout.returns, smoothing, part)
        for rollout, part in zip(rollouts, parts, strict=True)
    )
    return Calibration(
        env, risk, checkpoint, seed, tuple(rollouts), smoothing, ranks, tuple(probes), tuple(remarks)
    )


def _with_known_returns(
    rollouts: Sequence[Rollout], discount: float, name: str
) -> tuple[list[Rollout], list[str]]:
    """Return the part of the rollouts whose returns are known, and remarks on what is left out."""
    count = known_steps(rollouts, discount)
    if count is None:
        return list(rollouts), []
    truncations = [rollout.truncated_at for rollout in rollouts if rollout.truncated_at is not None]
    known = [first_steps(rollout, count) for rollout in rollouts] if count else []
    remark = (
        f"{len(truncations)} of {len(rollouts)} episodes had not ended after {min(truncations):,} steps"
    )
    if len(known) < 2:
        raise QuantailError(
            f"{name}: {remark}. At discount {discount:g} the missing rewards weigh too much: keeping "
            "only the known returns would select the short ones."
        )
    remark += ": the predicted mean replaces the rest of their returns"
    steps = max(len(rollout.returns) for rollout in rollouts)
    if count < steps:
        remark += f"; only the first {count:,} steps of each episode count"
    return known, [remark]


def mismatch_remarks(config: Config, risk: RiskMeasure) -> list[str]:
    """Return the reasons why a correct distribution may differ from the returns of the played policy."""
    remarks = []
    target = config.risk.target_risk or config.risk.risk
    is_distributional = not config.head.find().mean_only
    if not is_distributional:
        remarks.append(
            f"{config.run.agent} learns only the mean: look at the bias, not at the distribution"
        )
    if extra := config.learner.target.find().extra_terms:
        remarks.append(
            f"the distribution includes {extra}, so it is not that of the rewards alone and need not "
            "agree with the measured returns"
        )
    if is_distributional and str(risk) != target:
        remarks.append(
            f"the distribution is that of the policy under {target}, but the episodes were played under "
            f"{risk}: they need not agree"
        )
    if config.learner.n_step > 1:
        remarks.append(
            f"with n_step {config.learner.n_step} the first rewards of a target come from the exploring "
            "policy and are part of the distribution; the episodes were played by the greedy policy"
        )
    return remarks

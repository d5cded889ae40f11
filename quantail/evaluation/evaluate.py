"""Play whole episodes with an agent and record their raw, undiscounted scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.agents.agent import Agent, Risk, require_agent
from quantail.distributions import ReturnDistribution
from quantail.envs import EnvSource, find_family, make, specs_of
from quantail.envs.adapt import Adapter
from quantail.envs.source import name_of, require_fresh
from quantail.errors import QuantailError
from quantail.evaluation.episode import EpisodePlay, stack_masks
from quantail.evaluation.protocols import A_RECORDING, Protocol, find_protocol, taken_by
from quantail.evaluation.starts import Recording, Start, draw_starts, read_recording
from quantail.risk import RiskMeasure, parse_risk
from quantail.spaces import stack_observations, to_tensors
from quantail.validation import probability, whole_number

PARALLEL_EPISODES = 8  # environments that play at the same time

Watch = Callable[[int, int], None]  # called with the episodes finished and the steps played


@dataclass(frozen=True)
class Evaluation:
    """Raw scores of whole episodes, with the conditions under which they were played.

    Attributes:
        returns: The undiscounted, unclipped return of each episode, [episodes].
        lengths: The length of each episode in steps, [episodes].
        env: Name of the environment.
        risk: Risk measure of the policy that played.
        protocol: The protocol.
        seed: Seed of the episodes.
    """

    returns: NDArray[np.float64]  # the raw, undiscounted score of each episode
    lengths: NDArray[np.int64]  # in steps
    env: str
    risk: RiskMeasure  # of the policy that played
    protocol: Protocol
    seed: int

    def __repr__(self) -> str:
        played = f"{len(self.returns)} episodes of {self.env}, risk {self.risk}"
        return f"Evaluation({played}: mean {self.mean:.5g}, standard deviation {self.returns.std():.4g})"

    @property
    def epsilon(self) -> float:
        """Return the probability of a random action."""
        return self.protocol.epsilon

    @property
    def mean(self) -> float:
        """Return the mean over episodes."""
        return float(self.returns.mean())

    def value(self, risk: Risk | None = None) -> float:
        """Return the value of the episode returns under a risk measure.

        The measure is applied to whole episodes: CVaR(0.1) is the mean of the worst tenth of them.

        Args:
            risk: The risk measure; by default that of the policy.
        """
        measure = self.risk if risk is None else parse_risk(risk)
        if measure.is_neutral:
            return self.mean
        return float(measure.value(ReturnDistribution.of(self.returns)))

    @property
    def std(self) -> float:
        """Return the standard deviation over episodes."""
        return float(self.returns.std(ddof=1)) if len(self.returns) > 1 else 0.0

    def quantile(self, tau: float) -> float:
        """Return the quantile of the episode returns at the fraction τ."""
        return float(np.quantile(self.returns, tau))

    def to_dict(self) -> dict[str, Any]:
        """Return the scores and their conditions, ready for JSON."""
        return {
            "env": self.env,
            "protocol": self.protocol.to_dict(),
            "risk": str(self.risk),
            "epsilon": self.epsilon,
            "seed": self.seed,
            "episodes": len(self.returns),
            "mean": self.mean,
            "value": self.value(),
            "std": self.std,
            "min": float(self.returns.min()),
            "q25": self.quantile(0.25),
            "median": self.quantile(0.5),
            "q75": self.quantile(0.75),
            "max": float(self.returns.max()),
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
        }


def evaluate(
    agent: Agent,
    env: EnvSource | None = None,
    *,
    protocol: str | Protocol = "own",
    episodes: int | None = None,
    frames: int | None = None,
    seed: int = 1,
    risk: Risk | None = None,
    epsilon: float | None = None,
    starts: str | Path | Recording | None = None,
    watch: Watch = lambda episodes, steps: None,
) -> Evaluation:
    """Play whole episodes with an agent and return their scores. The same seed plays the same episodes.

        quantail.evaluate(agent, episodes=100).mean
        quantail.evaluate(agent, risk="cvar:0.1", seed=2).value("cvar:0.1")

    Args:
        agent: The agent.
        env: Another environment than the agent's own.
        protocol: "own" (30 episodes under the conditions of training), "no-op", "sticky", "human-starts"
            (which needs `starts`), the name of a registered protocol, or a `Protocol`.
        episodes: Number of episodes; by default the protocol's own.
        frames: Play whole episodes within this number of frames instead.
        seed: Seed of the episodes.
        risk: Risk measure of the policy; by default the agent's own.
        epsilon: Probability of a random action; by default the protocol's own. A change is added to the
            name of the protocol.
        starts: Recording with the states in which episodes start, or its file.
        watch: Called with the numbers of episodes and steps played so far.
    """
    require_agent(agent)
    source = agent.env if env is None else env
    seed = whole_number("seed", seed, 0)
    family = find_family(source, agent.config.environment)
    if isinstance(protocol, Protocol):
        chosen = taken_by(family, protocol)
    else:
        chosen = find_protocol(protocol, family, agent.config)
        if protocol == "own":
            chosen = replace(chosen, frames=0, episodes=30)
    chosen = with_budget(chosen, episodes, frames)
    if epsilon is not None:
        chosen = chosen.changed(epsilon=probability("epsilon", epsilon))
    drawn: Sequence[Start] = ()
    if chosen.starts:
        recording = _recording(starts)
        recording.require_fit(source)
        if chosen.starts not in (A_RECORDING, recording.label):
            raise QuantailError(f"the protocol starts from {chosen.starts}, not from {recording.label}.")
        chosen = replace(chosen, starts=recording.label, no_ops=0)
        drawn = draw_starts(recording, chosen.episodes, seed, chosen.max_frames)
    elif starts is not None:
        raise QuantailError(f"starts is for protocol human-starts, not {chosen.name}.")
    limited = chosen.limit(agent.config.environment)
    count = PARALLEL_EPISODES if chosen.frames else min(PARALLEL_EPISODES, chosen.episodes)
    adapters = [make(source, limited, conditions=chosen.conditions) for _ in range(count)]
    require_fresh(source)
    try:
        return play_episodes(agent, adapters, chosen, seed=seed, risk=risk, starts=drawn, watch=watch)
    finally:
        for adapter in adapters:
            adapter.close()


def with_budget(protocol: Protocol, episodes: int | None, frames: int | None) -> Protocol:
    """Return the protocol with a budget of episodes, or of frames, in place of its own."""
    if episodes is not None and frames is not None:
        raise QuantailError("an evaluation takes either episodes or frames, not both.")
    if frames is not None:
        if protocol.starts:
            raise QuantailError(
                "human-starts takes a number of episodes, one from each start, not frames."
            )
        return replace(protocol, frames=max(whole_number("frames", frames, 1), protocol.action_repeat))
    if episodes is None:
        return protocol
    return replace(protocol, frames=0, episodes=whole_number("episodes", episodes, 1))


def _recording(starts: str | Path | Recording | None) -> Recording:
    if starts is None:
        raise QuantailError(
            "human-starts needs a recording: pass starts, or --starts FILE. `quantail play` makes one."
        )
    return starts if isinstance(starts, Recording) else read_recording(starts)


def play_episodes(
    agent: Agent,
    adapters: Sequence[Adapter],
    protocol: Protocol,
    *,
    seed: int,
    risk: Risk | None = None,
    starts: Sequence[Start] = (),
    stop: Callable[[], bool] = lambda: False,
    watch: Watch = lambda episodes, steps: None,
) -> Evaluation:
    """Play the episodes of a protocol, or as many whole episodes as fit into its budget of frames.

    Episode i depends only on the seed and on i, not on the number of adapters. Without a limit in the
    protocol, an episode is truncated after 27,000 steps.
    """
    observation, actions = specs_of(adapters[0])
    if (observation, actions.count) != (agent.observation, agent.actions.count):
        raise QuantailError(
            f"the agent was trained on {name_of(agent.env)} (observations "
            f"{agent.observation.describe()}, {agent.actions.count} actions) and cannot play "
            f"{adapters[0].name} (observations {observation.describe()}, {actions.count} actions)."
        )
    measure = agent.risk if risk is None else parse_risk(risk)
    epsilon, episodes, steps = protocol.epsilon, protocol.episodes, protocol.budget_steps
    finished: dict[int, EpisodePlay] = {}
    adapters = adapters if steps else adapters[:episodes]

    def begin(index: int, adapter: Adapter) -> EpisodePlay:
        return EpisodePlay(index, seed, adapter, protocol, starts[index] if starts else None)

    playing = [begin(index, adapter) for index, adapter in enumerate(adapters)]
    next_index, played = len(adapters), 0
    while not _complete(finished, episodes, steps):
        if stop():
            raise EvaluationStopped
        explore = [play.generator.random() < epsilon for play in playing]
        greedy = np.zeros(len(playing), np.int64)
        if not all(explore):
            batch = to_tensors(stack_observations([play.observation for play in playing]))
            greedy = agent.greedy(batch, measure, stack_masks([play.adapter for play in playing]))
        still = []
        for play, random, best in zip(playing, explore, greedy, strict=True):
            play.step(play.random_action() if random else int(best))
            if not play.over:
                still.append(play)
                continue
            finished[play.index] = play
            if steps or next_index < episodes:
                still.append(begin(next_index, play.adapter))
                next_index += 1
        played += len(playing)
        watch(len(finished), played)
        playing = still
    counted = [finished[index] for index in range(_count(finished, episodes, steps))]
    return Evaluation(
        returns=np.array([play.score for play in counted]),
        lengths=np.array([play.length for play in counted]),
        env=adapters[0].name,
        risk=measure,
        protocol=protocol,
        seed=seed,
    )


class EvaluationStopped(Exception):  # noqa: N818
    """Raised when the caller asks to stop before the evaluation is complete."""


def _complete(finished: dict[int, EpisodePlay], episodes: int, steps: int) -> bool:
    """Return whether the finished episodes fill the budget."""
    if not steps:
        return len(finished) == episodes
    total, index = 0, 0
    while index in finished and total < steps:
        total, index = total + finished[index].length, index + 1
    return total >= steps


def _count(finished: dict[int, EpisodePlay], episodes: int, steps: int) -> int:
    """Return how many episodes, in their order, fit into the budget of steps; at least one."""
    if not steps:
        return episodes
    total, index = 0, 0
    while index in finished and total + finished[index].length <= steps:
        total, index = total + finished[index].length, index + 1
    return max(index, 1)

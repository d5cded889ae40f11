"""The actor: plays several copies of an environment at once, exploring, on Q_β."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.agents.exploration import Exploration
from quantail.envs.adapt import Adapter, newest_frame
from quantail.networks import ReturnNetwork
from quantail.risk import RiskMeasure
from quantail.taus import RandomTaus

Array = NDArray[Any]


@dataclass
class Episode:
    """An episode in progress. Its seed and actions are enough to replay it."""

    seed: int
    actions: list[int] = field(default_factory=list)
    score: float = 0.0  # the raw return so far


@dataclass(frozen=True)
class Transition:
    """One step of one environment."""

    env: int
    frame: Array  # seen before the action
    action: int
    reward: float  # raw
    first: bool  # the frame began an episode
    terminated: bool
    truncated: bool
    ends_return: bool  # in learning: at termination, or earlier where the family says so
    next_frame: Array  # the true one, also where the episode ended
    finished: Episode | None


class Actor:
    """Steps every environment with one batched forward pass, and starts a new episode at each end."""

    def __init__(
        self,
        envs: Sequence[Adapter],
        network: ReturnNetwork,
        risk: RiskMeasure,
        device: torch.device,
        seeds: np.random.Generator,
        exploration: np.random.Generator,
        taus: np.random.Generator,
        noise: np.random.Generator,
        strategy: Exploration,
    ) -> None:
        self.envs = list(envs)
        self.network = network
        self.risk = risk
        self.device = device
        self.seeds, self.exploration_draws, self.noise = seeds, exploration, noise
        self.exploration = strategy
        self.taus = RandomTaus(taus, network.head.tau_sampling)
        self.spec = self.envs[0].spec_of_observation
        self.actions = self.envs[0].actions
        kind = torch.from_numpy(np.zeros(0, self.spec.dtype)).dtype
        self.observations = torch.zeros((len(self.envs), *self.spec.input_shape), dtype=kind)
        self.episodes: list[Episode] = []

    def start(self) -> None:
        """Begin an episode in every environment."""
        self.episodes = [self._begin(index) for index in range(len(self.envs))]

    @torch.inference_mode()
    def choose(self, epsilon: float) -> NDArray[np.int64]:
        """Return an action per environment, exploring with probability ε."""
        return self.exploration.choose(
            self._values, len(self.envs), self.actions.count, epsilon, self.exploration_draws
        )

    def _values(self) -> Tensor:
        """Return Q_β on fresh τ and noise, [environments, actions]."""
        self.network.draw_noise(self.noise)
        features = self.network.features(self.observations.to(self.device))
        return self.network.head.value(features, self.risk, self.taus)

    def play(self, actions: NDArray[np.int64]) -> list[Transition]:
        """Take one action in each environment."""
        return [self._play_one(index, int(action)) for index, action in enumerate(actions)]

    def _play_one(self, index: int, action: int) -> Transition:
        episode = self.episodes[index]
        first = not episode.actions
        frame = newest_frame(self.spec, self.observations[index].numpy()).copy()
        observation, reward, terminated, truncated, info = self._step(index, action)
        episode.actions.append(action)
        episode.score += reward
        self.observations.numpy()[index] = observation
        over = terminated or truncated
        if over:
            self.episodes[index] = self._begin(index)
        return Transition(
            env=index,
            frame=frame,
            action=action,
            reward=reward,
            first=first,
            terminated=terminated,
            truncated=truncated and not terminated,
            ends_return=self.envs[index].ends_return(terminated, info),
            next_frame=newest_frame(self.spec, observation),
            finished=episode if over else None,
        )

    def _step(self, index: int, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        return self.envs[index].step(action + self.actions.start)

    def _begin(self, index: int) -> Episode:
        episode = Episode(int(self.seeds.integers(2**31)))
        observation, _ = self.envs[index].reset(seed=episode.seed)
        self.observations.numpy()[index] = observation
        return episode

    def replay_episode(self, index: int, episode: Episode, expected: Array) -> bool:
        """Replay an episode in an environment; return whether it reached the expected observation.

        Rewards are compared too: those of a wrapper such as NormalizeReward depend on earlier episodes.
        """
        observation, _ = self.envs[index].reset(seed=episode.seed)
        over, score = False, 0.0
        for action in episode.actions:
            if over:
                break
            observation, reward, terminated, truncated, _ = self._step(index, action)
            score += reward
            over = terminated or truncated
        same = not over and score == episode.score and np.array_equal(observation, expected)
        if same:
            self.observations.numpy()[index] = observation
            self.episodes[index] = episode
        else:
            self.episodes[index] = self._begin(index)
        return same

"""The actor: plays several copies of an environment at once, exploring, on Q_β."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from quantail.agents.exploration import Exploration
from quantail.envs.actions import Mask
from quantail.envs.vector import EpisodeLog, Outcome, Seen, VectorEnv
from quantail.errors import QuantailError
from quantail.networks import ReturnNetwork
from quantail.risk import DecisionContext, RiskMeasure
from quantail.spaces import (
    Observation,
    map_leaves,
    newest_frame,
    row_of,
    set_row,
    to_device,
    to_tensors,
)
from quantail.taus import RandomTaus


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
    frame: Observation  # seen before the action
    action: int
    reward: float  # raw
    first: bool  # the frame began an episode
    terminated: bool
    truncated: bool
    ends_return: bool  # in learning: at termination, or earlier where the family says so
    next_frame: Observation  # the true one, also where the episode ended
    finished: Episode | None
    mask: Mask | None = None  # the actions that were allowed, if the environment says so
    next_mask: Mask | None = None


@dataclass(frozen=True)
class Lost:
    """The end of an episode whose environment was lost: the last frame and mask that it gave."""

    env: int
    frame: Observation
    mask: Mask | None
    has_steps: bool


class Actor:
    """Steps every environment with one batched forward pass, and starts a new episode at each end.

    `masked` says whether the environments tell which actions are allowed.
    """

    def __init__(
        self,
        envs: VectorEnv,
        network: ReturnNetwork,
        risk: RiskMeasure,
        device: torch.device,
        seeds: np.random.Generator,
        exploration: np.random.Generator,
        taus: np.random.Generator,
        noise: np.random.Generator,
        strategy: Exploration,
        masked: bool = False,
    ) -> None:
        self.envs = envs
        self.network = network
        self.risk = risk
        self.device = device
        self.seeds, self.exploration_draws, self.noise = seeds, exploration, noise
        self.exploration = strategy
        self.taus = RandomTaus(taus, network.head.tau_sampling)
        self.spec, self.actions = envs.spec, envs.actions
        self.observations = self.spec.zeros(len(envs))
        self.masks = np.ones((len(envs), self.actions.count), bool) if masked else None
        self._inputs = to_tensors(self.observations)  # the same memory, as the network takes it
        self.episodes: list[Episode] = []
        self.lost: list[Lost] = []  # in the last step

    def start(self) -> None:
        """Begin an episode in every environment."""
        self.episodes = [Episode(0)] * len(self.envs)
        self._begin(range(len(self.envs)))

    @torch.inference_mode()
    def choose(self, epsilon: float) -> NDArray[np.int64]:
        """Return an action per environment, exploring with probability ε."""
        chosen = self.exploration.choose(
            self._values, self.masks, len(self.envs), self.actions.count, epsilon, self.exploration_draws
        )
        if self.masks is not None and not self.masks[np.arange(len(chosen)), chosen].all():
            raise QuantailError(
                f"exploration {type(self.exploration).__name__} chose an action that the environment "
                "does not allow: it must choose among those that are True in `masks`."
            )
        return chosen

    def _values(self) -> Tensor:
        """Return Q_β on fresh τ and noise, [environments, actions]; −∞ for forbidden actions."""
        self.network.draw_noise(self.noise)
        features = self.network.features(to_device(self._inputs, self.device))
        mask = None if self.masks is None else torch.from_numpy(self.masks).to(self.device)
        context = DecisionContext(mask)
        return context.allowed(self.network.head.value(features, self.risk, self.taus, context))

    def play(self, actions: NDArray[np.int64]) -> list[Transition]:
        """Take one action in each environment."""
        taken = actions.tolist()
        outcomes = self.envs.step(taken)
        self.lost = [self._last(index) for index, outcome in enumerate(outcomes) if outcome is None]
        played = [
            self._advance(index, taken[index], outcome)
            for index, outcome in enumerate(outcomes)
            if outcome is not None
        ]
        self._begin([at for at, outcome in enumerate(outcomes) if outcome is None or outcome.over])
        return played

    def _last(self, index: int) -> Lost:
        frame = map_leaves(np.copy, newest_frame(self.spec, row_of(self.observations, index)))
        mask = None if self.masks is None else self.masks[index].copy()
        return Lost(index, frame, mask, bool(self.episodes[index].actions))

    def _advance(self, index: int, action: int, outcome: Outcome) -> Transition:
        episode = self.episodes[index]
        first = not episode.actions
        frame = map_leaves(np.copy, newest_frame(self.spec, row_of(self.observations, index)))
        mask = None if self.masks is None else self.masks[index].copy()
        episode.actions.append(action)
        episode.score += outcome.reward
        self._see(index, outcome.seen, may_lack_mask=outcome.terminated)
        return Transition(
            env=index,
            frame=frame,
            action=action,
            reward=outcome.reward,
            first=first,
            terminated=outcome.terminated,
            truncated=outcome.truncated and not outcome.terminated,
            ends_return=outcome.ends_return,
            next_frame=newest_frame(self.spec, outcome.seen.observation),
            finished=episode if outcome.over else None,
            mask=mask,
            next_mask=outcome.seen.mask,
        )

    def _begin(self, which: range | list[int]) -> None:
        """Begin an episode in some of the environments."""
        if not which:
            return
        seeds = {index: int(self.seeds.integers(2**31)) for index in which}
        for index, seen in self.envs.reset(seeds).items():
            self.episodes[index] = Episode(seeds[index])
            self._see(index, seen)

    def _see(self, index: int, seen: Seen, *, may_lack_mask: bool = False) -> None:
        set_row(self.observations, index, seen.observation)
        if self.masks is not None and (seen.mask is not None or may_lack_mask):
            self.masks[index] = True if seen.mask is None else seen.mask
        elif self.masks is not None or seen.mask is not None:
            gave, other = ("no", "one") if seen.mask is None else ("an", "none")
            steps = len(self.episodes[index].actions)
            raise QuantailError(
                f"the environment gave {gave} action mask after step {steps} of an "
                f"episode, and {other} when the run began: it must give one at every reset and step, or "
                "never."
            )

    def continue_episodes(self, episodes: list[Episode], expected: Observation) -> list[int]:
        """Replay episodes in progress, whose newest observations are given.

        Return the environments in which the replay led to something else: there an episode begins.
        """
        self.episodes = list(episodes)
        logs = {
            index: EpisodeLog(one.seed, one.actions, one.score, row_of(expected, index))
            for index, one in enumerate(episodes)
        }
        failed = []
        for index, seen in self.envs.replay(logs).items():
            if seen is None:
                failed.append(index)
            else:
                self._see(index, seen)
        self._begin(failed)
        return failed

"""Real frames for benchmarks, from random play."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.envs import make, specs_of
from quantail.recipes import compose
from quantail.replay import ReplayStore
from quantail.spaces import ActionSpec, ObservationSpec

REPEAT = 0.7  # probability that the action is repeated for another step, for more varied play


@dataclass(frozen=True)
class Scenes:
    """Consecutive transitions, and which of their frames begin an episode."""

    observation: ObservationSpec
    actions: ActionSpec
    frames: NDArray[Any]
    first: NDArray[np.bool_]
    taken: NDArray[np.int64]
    rewards: NDArray[np.float32]

    def store(self, capacity: int) -> ReplayStore:
        """Return a full replay of this capacity, repeating the frames as needed."""
        store = ReplayStore(self.observation, 1, capacity)
        self.add(store, 0, capacity)
        return store

    def add(self, store: ReplayStore, begin: int, end: int) -> None:
        """Append the transitions from `begin` to `end`, repeating them as needed."""
        for index in range(begin, end):
            at = index % len(self.frames)
            store.add(
                0,
                self.frames[at],
                int(self.taken[at]),
                float(self.rewards[at]),
                first=bool(self.first[at]),
                terminal=bool(self.first[(at + 1) % len(self.frames)]),
            )


@cache
def play(env: str, preset: str, steps: int) -> Scenes:
    """Play an environment for a number of steps, with random actions that last a few steps."""
    game = make(env, compose(preset, {}).environment)
    observation, actions = specs_of(game)
    rng = np.random.default_rng(0)
    (leaf,) = observation.leaves.values()
    frames = np.zeros((steps, *leaf.shape), leaf.dtype)
    first, taken = np.zeros(steps, bool), np.zeros(steps, np.int64)
    rewards = np.zeros(steps, np.float32)
    seen, _ = game.reset(seed=0)
    first[0], action = True, 0
    for step in range(steps):
        frames[step] = seen[-1] if observation.stack > 1 else seen
        if rng.random() > REPEAT:
            action = int(rng.integers(actions.count))
        taken[step] = action
        seen, reward, terminated, truncated, _ = game.step(action + actions.start)
        rewards[step] = np.sign(reward)
        if terminated or truncated:
            seen, _ = game.reset(seed=step + 1)
            if step + 1 < steps:
                first[step + 1] = True
    game.close()
    return Scenes(observation, actions, frames, first, taken, rewards)

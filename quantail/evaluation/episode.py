"""An episode that an evaluation plays."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from quantail.envs.actions import Mask
from quantail.envs.adapt import Adapter
from quantail.evaluation.protocols import LONGEST, Protocol
from quantail.evaluation.starts import Start


@dataclass
class EpisodePlay:
    """An episode in progress in one adapter."""

    index: int
    seed: int
    adapter: Adapter
    protocol: Protocol
    start: Start | None
    score: float = 0.0
    length: int = 0
    over: bool = False
    generator: np.random.Generator = field(init=False)
    observation: Any = field(init=False)
    longest: int = field(init=False)

    def __post_init__(self) -> None:
        self.generator = np.random.default_rng([self.seed, self.index])
        seed, before = int(self.generator.integers(2**31)), 0
        if self.start is None:
            self.observation, _ = self.adapter.reset(seed=seed)
        else:
            self.observation = self.adapter.reset_to(self.start.seed, self.start.actions)
            before = len(self.start.actions)  # the frame limit covers the recorded part too
        left = (self.protocol.max_frames - before) // self.protocol.action_repeat
        self.longest = left if self.protocol.max_frames else LONGEST

    def random_action(self) -> int:
        """Draw an action among those that are allowed."""
        mask = self.adapter.action_mask
        if mask is None:
            return int(self.generator.integers(self.adapter.actions.count))
        return int(self.generator.choice(np.flatnonzero(mask)))

    def step(self, action: int) -> None:
        """Take an action, counted from 0."""
        taken = self.adapter.actions.to_env(action)
        self.observation, reward, terminated, truncated, _ = self.adapter.step(taken)
        self.score += reward
        self.length += 1
        self.over = terminated or truncated or self.length >= self.longest


def stack_masks(adapters: Sequence[Adapter]) -> Mask | None:
    """Return the masks of several environments, [environments, actions]; None if they have none."""
    masks = [adapter.action_mask for adapter in adapters]
    if all(mask is None for mask in masks):
        return None
    return np.stack([np.ones(adapters[0].actions.count, bool) if m is None else m for m in masks])

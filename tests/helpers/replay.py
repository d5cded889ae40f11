"""Replay stores filled with known episodes."""

from dataclasses import replace
from functools import partial

import numpy as np
from hypothesis import strategies as st

from quantail.part_config import NoConfig
from quantail.replay import Replay, ReplayStore, UniformSampler
from quantail.spaces import LeafSpec, ObservationSpec, map_leaves
from tests.helpers.oracle import ReplayOracle

PLAIN = ObservationSpec.array((2,), "float32", "vector")
COMPRESSED = ObservationSpec.array((48, 48), "uint8", "hw")
TREE = ObservationSpec(
    {"image": LeafSpec((48, 48), "uint8", "hw"), "state/speed": LeafSpec((3,), "float32", "vector")}
)
ENDINGS = st.sampled_from(["", "", "", "", "terminated", "truncated", "life", "cut"])


def uniform(store, batch_size, n_step, discount):
    sampler = UniformSampler(store, np.random.default_rng(0), NoConfig())
    return Replay(store, sampler, batch_size, n_step, discount)


class EpisodeRecorder:
    """Record the same random episodes in a store and in oracles."""

    def __init__(self, envs, capacity, stack, kind=PLAIN, num_masked=0):
        self.kind, self.num_masked = kind, num_masked
        stacked = {path: replace(leaf, stack=stack) for path, leaf in kind.leaves.items()}
        self.store = ReplayStore(ObservationSpec(stacked), envs, capacity, num_masked)
        self.stack = stack
        self.steps = [[] for _ in range(envs)]  # of each step: (oracle, t), or None for a final frame
        self.playing = [ReplayOracle() for _ in range(envs)]
        self.clock = 0

    def frame(self):
        self.clock += 1
        return map_leaves(partial(_frame, number=self.clock), self.kind.tree)

    def mask(self):
        """A mask that differs from one step to the next."""
        return np.random.default_rng(self.clock).random(self.num_masked) < 0.5

    def step(self, env, ending):
        episode = self.playing[env]
        frame, action, reward = self.frame(), self.clock % 5, float(self.clock % 7)
        terminal, mask, first = ending in ("terminated", "life"), self.mask(), not episode.frames
        self.store.add(env, frame, action, reward, first=first, terminal=terminal, mask=mask)
        episode.masks.append(mask)
        self.steps[env].append((episode, len(episode.frames)))
        episode.frames.append(frame)
        episode.actions.append(action)
        episode.rewards.append(reward)
        episode.terminal.append(terminal)
        if ending in ("truncated", "cut"):
            episode.final_frame = self.frame()
            episode.masks.append(self.mask())
            self.store.truncate(env, episode.final_frame, episode.masks[-1])
            self.steps[env].append(None)
        if ending in ("terminated", "truncated", "cut"):
            self.playing[env] = ReplayOracle()


def filled(envs=2, capacity=40, stack=2, steps=60, every=7):
    recorder = EpisodeRecorder(envs, capacity, stack)
    for step in range(steps):
        ending = ("terminated", "truncated")[(step // every) % 2] if step % every == every - 1 else ""
        recorder.step(step % envs, ending)
    return recorder


def _frame(leaf, number):
    values = np.arange(np.prod(leaf.shape)) * 7 + number
    return values.astype(leaf.dtype).reshape(leaf.shape)

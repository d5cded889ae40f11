"""Replay stores filled with known episodes."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from quantail.part_config import NoConfig
from quantail.replay import Replay, ReplayStore, UniformSampler
from quantail.spaces import ObservationSpec
from tests.helpers.oracle import ReplayOracle

PLAIN = ObservationSpec((2,), "float32", "vector")
COMPRESSED = ObservationSpec((48, 48), "uint8", "hw")
ENDINGS = st.sampled_from(["", "", "", "", "terminated", "truncated", "life", "cut"])


def uniform(store, batch_size, n_step, discount):
    sampler = UniformSampler(store, np.random.default_rng(0), NoConfig())
    return Replay(store, sampler, batch_size, n_step, discount)


class EpisodeRecorder:
    """Record the same random episodes in a store and in oracles."""

    def __init__(self, envs, capacity, stack, kind=PLAIN):
        self.kind = kind
        self.store = ReplayStore(replace(kind, stack=stack), envs, capacity)
        self.stack = stack
        self.steps = [[] for _ in range(envs)]  # of each step: (oracle, t), or None for a final frame
        self.playing = [ReplayOracle() for _ in range(envs)]
        self.clock = 0

    def frame(self):
        self.clock += 1
        values = np.arange(np.prod(self.kind.shape)) * 7 + self.clock
        return values.astype(self.kind.dtype).reshape(self.kind.shape)

    def step(self, env, ending):
        episode = self.playing[env]
        frame, action, reward = self.frame(), self.clock % 5, float(self.clock % 7)
        terminal = ending in ("terminated", "life")
        self.store.add(env, frame, action, reward, first=not episode.frames, terminal=terminal)
        self.steps[env].append((episode, len(episode.frames)))
        episode.frames.append(frame)
        episode.actions.append(action)
        episode.rewards.append(reward)
        episode.terminal.append(terminal)
        if ending in ("truncated", "cut"):
            episode.final_frame = self.frame()
            self.store.truncate(env, episode.final_frame)
            self.steps[env].append(None)
        if ending in ("terminated", "truncated", "cut"):
            self.playing[env] = ReplayOracle()


def filled(envs=2, capacity=40, stack=2, steps=60, every=7):
    recorder = EpisodeRecorder(envs, capacity, stack)
    for step in range(steps):
        ending = ("terminated", "truncated")[(step // every) % 2] if step % every == every - 1 else ""
        recorder.step(step % envs, ending)
    return recorder

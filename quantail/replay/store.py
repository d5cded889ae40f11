"""Rings of frames, one for each environment."""

import numpy as np
from numpy.typing import NDArray

from quantail.observations import ObservationSpec
from quantail.replay.frames import Array, Index, frames_for, likely_bytes

# What a place in a ring holds beside its frame.
FIRST = 1  # the frame begins an episode: stacks do not reach behind it
TERMINAL = 2  # the transition ends in a state of value zero (an episode's end, or a life lost)
TRUNCATED = 4  # the episode was cut after the transition: the next place holds its last frame
FINAL = 8  # only the last frame of a truncated episode: no transition starts here


class ReplayStore:
    """Frames, actions and rewards in the order in which each environment gave them.

    Place i of an environment holds the frame seen, the action taken there and the reward that came
    of it; the frame that followed is at place i + 1. Places are numbered from the run's start and
    never reused, the ring keeps the newest `length` of them.
    """

    def __init__(self, spec: ObservationSpec, envs: int, capacity: int) -> None:
        self.spec = spec
        self.envs = envs
        self.length = capacity // envs
        shape = (envs, self.length)
        self.frames = frames_for(spec, envs * self.length)
        self.actions = np.zeros(shape, np.int32)
        self.rewards = np.zeros(shape, np.float32)
        self.flags = np.zeros(shape, np.uint8)
        self.written = np.zeros(envs, np.int64)

    @staticmethod
    def bytes_needed(spec: ObservationSpec, capacity: int) -> int:
        """Memory for so many places: an estimate where frames are compressed."""
        return capacity * (likely_bytes(spec) + 4 + 4 + 1)

    def add(
        self, env: int, frame: Array, action: int, reward: float, *, first: bool, terminal: bool
    ) -> None:
        """Append a transition: the frame seen, the action taken, the reward that came of it."""
        flags = (FIRST if first else 0) | (TERMINAL if terminal else 0)
        self._append(env, frame, action, reward, flags)

    def truncate(self, env: int, final_frame: Array) -> None:
        """The episode was cut after the last transition, in a state with this frame.

        Where that transition ended in a state of value zero, such as a life lost, nothing follows it.
        """
        last = (self.written[env] - 1) % self.length
        if self.flags[env, last] & TERMINAL:
            return
        self.flags[env, last] |= TRUNCATED
        self._append(env, final_frame, 0, 0.0, FINAL)

    def _append(self, env: int, frame: Array, action: int, reward: float, flags: int) -> None:
        at = self.written[env] % self.length
        self.frames.put(env * self.length + int(at), frame)
        self.actions[env, at] = action
        self.rewards[env, at] = reward
        self.flags[env, at] = flags
        self.written[env] += 1

    @property
    def oldest(self) -> Index:
        """The oldest place still held, for each environment."""
        return np.maximum(self.written - self.length, 0)

    def __len__(self) -> int:
        """Places in use, over all environments."""
        return int((self.written - self.oldest).sum())

    def flags_at(self, env: Index, place: Index) -> NDArray[np.uint8]:
        flags: NDArray[np.uint8] = self.flags[env, place % self.length]
        return flags

    def stacks(self, env: Index, place: Index, out: Array) -> None:
        """Rebuild the stacked observations at these places, zeros before an episode's first frame."""
        if self.spec.stack == 1:
            self.frames.read(self.slots(env, place), out)
            return
        at, blank = self._stacked(env, place)
        wanted = np.where(blank, place[:, None], at)[:, ::-1]  # any frame that is there, where none is
        self.frames.read(self.slots(env[:, None], wanted).ravel(), out.reshape(-1, *self.spec.shape))
        out[blank[:, ::-1]] = 0

    def slots(self, env: Index, place: Index) -> Index:
        """Where places lie in the rings, one after the other."""
        slots: Index = env * self.length + place % self.length
        return slots

    def stack_is_whole(self, env: Index, place: Index) -> NDArray[np.bool_]:
        """Whether every frame that the stack at a place needs is still in the ring."""
        at, blank = self._stacked(env, place)
        there = blank | (at >= self.oldest[env][:, None])
        return np.asarray(there.all(axis=1))

    def _stacked(self, env: Index, place: Index) -> tuple[Index, NDArray[np.bool_]]:
        """The places of a stack's frames, newest first, and which lie before the episode's first."""
        at = place[:, None] - np.arange(self.spec.stack)  # [places, stack]
        begins = (self.flags_at(env[:, None], at) & FIRST) > 0
        blank = np.zeros_like(begins)
        np.logical_or.accumulate(begins[:, :-1], axis=1, out=blank[:, 1:])
        return at, blank

    def newest_returns(self, env: int, discount: float) -> NDArray[np.float64]:
        """Discounted returns from each place of the newest episode, its last first, if still held."""
        total, returns = 0.0, []
        for place in range(int(self.written[env]) - 1, int(self.oldest[env]) - 1, -1):
            at = place % self.length
            flags = int(self.flags[env, at])
            total = float(self.rewards[env, at]) + (0.0 if flags & TERMINAL else discount * total)
            returns.append(total)
            if flags & FIRST:
                break
        return np.array(returns)

    def check_valid(self) -> None:
        """Raise if what the rings hold cannot have come from episodes."""
        for env in range(self.envs):
            places = np.arange(self.oldest[env], self.written[env])
            flags = self.flags[env, places % self.length]
            final, truncated = (flags & FINAL) > 0, (flags & TRUNCATED) > 0
            assert not (final & ((flags & (FIRST | TERMINAL | TRUNCATED)) > 0)).any()
            assert not (truncated & ((flags & TERMINAL) > 0)).any()
            assert (final[1:] == truncated[:-1]).all()
            assert not truncated[-1:].any()

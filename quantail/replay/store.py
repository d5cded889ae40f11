"""Ring buffers of frames, masks, actions and rewards, one ring for each environment."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from quantail.replay.frames import Array, Index, ObservationFrames, estimated_frame_bytes
from quantail.spaces import Observation, ObservationSpec, map_leaves

# Flags of a step.
FIRST = 1  # the first step of an episode: frame stacks do not reach before it
TERMINAL = 2  # the next state has value zero, because the episode terminated or a life was lost
TRUNCATED = 4  # the episode was truncated after this step: the next step holds its last frame
FINAL = 8  # holds only the last frame of a truncated episode: no transition starts here


class ReplayStore:
    """The frames, actions and rewards of each environment in the order of time.

    Step i of an environment holds the observed frame, the action taken and the reward received; the next
    frame is at step i + 1. Steps are numbered from the start of the run, and a ring keeps the newest
    `length` of them: step i is at position `i % length`. If `num_masked` is not 0, a step also holds
    which of so many actions were allowed, one bit each.
    """

    def __init__(self, spec: ObservationSpec, num_envs: int, capacity: int, num_masked: int = 0) -> None:
        self.spec = spec
        self.num_envs = num_envs
        self.length = capacity // num_envs
        shape = (num_envs, self.length)
        self.frames = ObservationFrames(spec, num_envs * self.length)
        self.num_masked = num_masked
        self.masks = np.zeros((*shape, _mask_bytes(num_masked)), np.uint8)
        self.actions = np.zeros(shape, np.int32)
        self.rewards = np.zeros(shape, np.float32)
        self.flags = np.zeros(shape, np.uint8)
        self.written = np.zeros(num_envs, np.int64)  # steps that each environment has added so far

    @staticmethod
    def bytes_needed(spec: ObservationSpec, capacity: int, num_masked: int = 0) -> int:
        """Return the memory for this many steps, an estimate where frames are compressed."""
        return capacity * (estimated_frame_bytes(spec) + _mask_bytes(num_masked) + 4 + 4 + 1)

    def add(
        self,
        env: int,
        frame: Observation,
        action: int,
        reward: float,
        *,
        first: bool,
        terminal: bool,
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Append a transition: the observed frame and mask, the action taken, the reward received."""
        flags = (FIRST if first else 0) | (TERMINAL if terminal else 0)
        self._append(env, frame, mask, action, reward, flags)

    def truncate(
        self, env: int, final_frame: Observation, mask: NDArray[np.bool_] | None = None
    ) -> None:
        """Mark the episode as truncated after its last transition, in a state with this frame and mask.

        If that transition was terminal, for example because a life was lost, nothing needs to be stored.
        """
        last = (self.written[env] - 1) % self.length
        if self.flags[env, last] & TERMINAL:
            return
        self.flags[env, last] |= TRUNCATED
        self._append(env, final_frame, mask, 0, 0.0, FINAL)

    def _append(
        self,
        env: int,
        frame: Observation,
        mask: NDArray[np.bool_] | None,
        action: int,
        reward: float,
        flags: int,
    ) -> None:
        at = self.written[env] % self.length
        self.frames.put(env * self.length + int(at), frame)
        if self.num_masked:
            self.masks[env, at] = 255 if mask is None else np.packbits(mask)
        self.actions[env, at] = action
        self.rewards[env, at] = reward
        self.flags[env, at] = flags
        self.written[env] += 1

    @property
    def oldest(self) -> Index:
        """The oldest step that is still stored, for each environment."""
        return np.maximum(self.written - self.length, 0)

    def __len__(self) -> int:
        """Return the number of stored steps over all environments."""
        return int((self.written - self.oldest).sum())

    def flags_at(self, env: Index, step: Index) -> NDArray[np.uint8]:
        flags: NDArray[np.uint8] = self.flags[env, step % self.length]
        return flags

    def masks_at(self, env: Index, step: Index) -> NDArray[np.bool_]:
        """Return which actions were allowed at these steps, [steps, actions]."""
        packed = self.masks[env, step % self.length]
        return np.unpackbits(packed, axis=-1, count=self.num_masked).astype(bool)

    def stacks(self, env: Index, step: Index, out: Observation) -> None:
        """Write the stacked observations of these steps to `out`; zeros precede an episode's start."""
        if self.spec.stack == 1:
            self.frames.read(self.indices(env, step), out)
            return
        at, blank = self._stacked(env, step)
        # [steps, stack], oldest first; blank frames read some stored frame and are zeroed below
        wanted = np.where(blank, step[:, None], at)[:, ::-1]
        frames = map_leaves(lambda leaf, array: array.reshape(-1, *leaf.shape), self.spec.tree, out)
        self.frames.read(self.indices(env[:, None], wanted).ravel(), frames)
        map_leaves(partial(_blank, which=blank[:, ::-1]), out)

    def indices(self, env: Index, step: Index) -> Index:
        """Return the flat indices of steps in the concatenated rings."""
        indices: Index = env * self.length + step % self.length
        return indices

    def stack_is_complete(self, env: Index, step: Index) -> NDArray[np.bool_]:
        """Return whether every frame of the stack at each of these steps is still in the ring."""
        at, blank = self._stacked(env, step)
        stored = blank | (at >= self.oldest[env][:, None])
        return np.asarray(stored.all(axis=1))

    def _stacked(self, env: Index, step: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the steps of a stack's frames, newest first, and which precede the episode's start."""
        at = step[:, None] - np.arange(self.spec.stack)  # [steps, stack]
        begins = (self.flags_at(env[:, None], at) & FIRST) > 0
        blank = np.zeros_like(begins)
        np.logical_or.accumulate(begins[:, :-1], axis=1, out=blank[:, 1:])
        return at, blank

    def newest_returns(self, env: int, discount: float) -> NDArray[np.float64]:
        """Return the discounted returns from each stored step of the newest episode, last step first."""
        total, returns = 0.0, []
        for step in range(int(self.written[env]) - 1, int(self.oldest[env]) - 1, -1):
            at = step % self.length
            flags = int(self.flags[env, at])
            total = float(self.rewards[env, at]) + (0.0 if flags & TERMINAL else discount * total)
            returns.append(total)
            if flags & FIRST:
                break
        return np.array(returns)

    def check(self) -> None:
        """Raise an error if the stored flags do not describe a sequence of episodes."""
        for env in range(self.num_envs):
            steps = np.arange(self.oldest[env], self.written[env])
            flags = self.flags[env, steps % self.length]
            final, truncated = (flags & FINAL) > 0, (flags & TRUNCATED) > 0
            valid = not (final & ((flags & (FIRST | TERMINAL | TRUNCATED)) > 0)).any()
            valid &= not (truncated & ((flags & TERMINAL) > 0)).any()
            valid &= bool((final[1:] == truncated[:-1]).all()) and not truncated[-1:].any()
            if not valid:
                raise ValueError(f"the steps of environment {env} are not a sequence of episodes")


def _blank(stacks: Array, which: NDArray[np.bool_]) -> None:
    """Zero some frames of stacks [steps, stack, *frame]."""
    stacks[which] = 0


def _mask_bytes(num_actions: int) -> int:
    return -(-num_actions // 8)

"""Replay buffers that store each frame once and rebuild stacks and n-step returns when sampling."""

from quantail.replay.journal import ReplayJournal
from quantail.replay.memory import require_memory
from quantail.replay.prioritized import PrioritizedSampler
from quantail.replay.replay import Replay
from quantail.replay.store import ReplayStore
from quantail.replay.uniform import UniformSampler

__all__ = [
    "PrioritizedSampler",
    "Replay",
    "ReplayJournal",
    "ReplayStore",
    "UniformSampler",
    "require_memory",
]

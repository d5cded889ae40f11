"""Replay buffers that store each frame once and rebuild stacks and n-step returns when sampling."""

from quantail.replay.build import SAMPLERS
from quantail.replay.config import ReplayConfig
from quantail.replay.journal import ReplayJournal
from quantail.replay.memory import require_memory
from quantail.replay.prioritized import PrioritizedConfig, PrioritizedSampler
from quantail.replay.replay import Replay
from quantail.replay.sampler import Sampler
from quantail.replay.store import ReplayStore
from quantail.replay.uniform import UniformSampler

__all__ = [
    "SAMPLERS",
    "PrioritizedConfig",
    "PrioritizedSampler",
    "Replay",
    "ReplayConfig",
    "ReplayJournal",
    "ReplayStore",
    "Sampler",
    "UniformSampler",
    "require_memory",
]

"""Replay: frames stored once, stacks and n-step returns rebuilt when they are sampled."""

from quantail.replay.journal import ReplayJournal
from quantail.replay.memory import require_memory
from quantail.replay.store import ReplayStore
from quantail.replay.uniform import UniformReplay

__all__ = ["ReplayJournal", "ReplayStore", "UniformReplay", "require_memory"]

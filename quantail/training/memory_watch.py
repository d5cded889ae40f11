"""Warn before the replay buffer of a run fills the memory of the machine."""

from quantail.replay import ReplayStore
from quantail.replay.memory import available_memory, human_bytes


class MemoryWatch:
    """Compares the memory that the replay buffer will still need with what is free, and warns once."""

    def __init__(self, store: ReplayStore) -> None:
        self.store = store
        self._warned = False

    def warning(self, remaining_steps: int) -> str:
        """Return a warning if this many more steps will not fit, or ""."""
        remaining, free = self.store.frames.remaining_bytes(remaining_steps), available_memory()
        if free is None or remaining <= free or self._warned:
            return ""
        self._warned = True
        return (
            f"the replay buffer will take {human_bytes(remaining)} more and {human_bytes(free)} of "
            "memory is free: start a new run with a smaller buffer_size before memory runs out."
        )

"""Named, independent random generators that are all derived from one seed."""

import zlib
from typing import Any

import numpy as np

from quantail.stateful import State, require_keys

GENERATORS = (
    "episodes",
    "exploration",
    "acting-taus",
    "acting-noise",
    "learning-taus",
    "learning-noise",
    "replay",
)


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the generator with this name, which is independent of all others of the same seed."""
    return np.random.default_rng(_sequence(seed, name))


def derived_seed(seed: int, name: str) -> int:
    """Return an integer seed derived from the seed and a name."""
    return int(_sequence(seed, name).generate_state(1)[0])


class Generators:
    """The random generators of a run by name."""

    def __init__(self, seed: int) -> None:
        self._by_name = {name: generator(seed, name) for name in GENERATORS}

    def __getitem__(self, name: str) -> np.random.Generator:
        return self._by_name[name]

    def state_dict(self) -> dict[str, Any]:
        return {name: dict(one.bit_generator.state) for name, one in self._by_name.items()}

    def load_state_dict(self, state: State) -> None:
        require_keys(state, GENERATORS)
        for name, one in self._by_name.items():
            one.bit_generator.state = state[name]

    def check(self) -> None:
        """NumPy has refused any state that is not one of the generator."""


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))

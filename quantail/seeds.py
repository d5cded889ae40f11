"""Named, independent random generators that are all derived from one seed."""

import zlib
from typing import Any

import numpy as np

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


def state_of(generators: dict[str, np.random.Generator]) -> dict[str, Any]:
    """Return the states of the generators, ready for JSON."""
    return {name: dict(one.bit_generator.state) for name, one in generators.items()}


def restore(generators: dict[str, np.random.Generator], states: dict[str, Any]) -> None:
    """Restore the states of the generators."""
    if states.keys() != generators.keys():
        raise ValueError(f"its generators are {', '.join(states)}")
    for name, state in states.items():
        generators[name].bit_generator.state = state


def _sequence(seed: int, name: str) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),))

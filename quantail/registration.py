"""Register Quantail's own environments with Gymnasium.

Gymnasium 1.x does not search for plugins, so importing `quantail` registers them. Only their names are
registered here; the worlds themselves are imported when one is made.
"""

import gymnasium as gym

NAMES = ("RiskyBandit", "WindyCliff", "Chain", "Stopping", "Allais")


def world_id(name: str) -> str:
    """Return the Gymnasium id of a world."""
    return f"Quantail/{name}-v0"


def register() -> None:
    """Register the ids of the worlds with Gymnasium."""
    for name in NAMES:
        if world_id(name) not in gym.registry:
            gym.register(world_id(name), entry_point=f"quantail.envs.worlds.games:{name}")

"""Quantail's own environments, by the ids under which Gymnasium makes them.

Gymnasium 1.x does not look for plugins, so importing `quantail` registers them. Only names are told
here: the worlds themselves are imported when one is made.
"""

import gymnasium as gym

NAMES = ("RiskyBandit", "WindyCliff", "Chain", "Stopping")


def world_id(name: str) -> str:
    """What Gymnasium calls a world."""
    return f"Quantail/{name}-v0"


def register() -> None:
    """Make the worlds' ids known to Gymnasium."""
    for name in NAMES:
        if world_id(name) not in gym.registry:
            gym.register(world_id(name), entry_point=f"quantail.envs.worlds.games:{name}")

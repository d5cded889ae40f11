"""Environments for human players: frame by frame and with all actions of the console."""

import hashlib
from pathlib import Path
from typing import Any

from quantail.envs.adapt import Adapter
from quantail.envs.atari import rom_path
from quantail.envs.make import EnvSource, atari_game, kind_of, make, name_of
from quantail.recipes import compose


def make_player(env: EnvSource, render_mode: str | None = None) -> Adapter:
    """Make an environment for a human player, in ALE without repeat, no-ops and sticky actions."""
    if kind_of(env) == "atari":
        plain = {"action_repeat": 1, "no_ops": 0, "stack": 1, "max_episode_steps": 0}
        return make(env, compose("atari-paper", plain), render_mode, all_actions=True)
    return make(env, compose("small", {}), render_mode)


def player_conditions(env: EnvSource) -> dict[str, Any]:
    """Return everything that a recorded game depends on besides its seed and actions."""
    if kind_of(env) != "atari":
        return {"env": name_of(env)}
    game, options = atari_game(env)
    path = rom_path(game)
    checksum = hashlib.md5(Path(path).read_bytes()).hexdigest() if path else "none"
    return {
        "env": f"ALE {game}",
        "rom": checksum,
        **options,
        "actions": "console",
        "action_repeat": 1,
        "no_ops": 0,
        "sticky": 0.0,
    }

"""Names of actions and legends of rendered images."""

from quantail.envs.adapt import Adapter
from quantail.envs.atari import AtariGame
from quantail.envs.worlds import World

BUTTONS = "nlurdf"  # MinAtar's actions, by number
MINATAR = {"n": "nothing", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}


def action_names(env: Adapter) -> list[str]:
    """Return a name for each action: the environment's own if it has names, otherwise its number."""
    base = env.unwrapped
    if isinstance(base, AtariGame):
        return [action.name.lower() for action in base.action_set]
    if isinstance(base, World):
        return list(base.actions)
    if hasattr(base, "game") and hasattr(base, "action_set"):  # MinAtar
        return [MINATAR[BUTTONS[number]] for number in base.action_set]
    return [f"action {number + env.actions.start}" for number in range(env.actions.count)]


def picture_legend(env: Adapter) -> str:
    """Return what the colours of the rendered image mean, or "" if that is unknown."""
    base = env.unwrapped
    return base.legend if isinstance(base, World) else ""

"""A working folder whose files have the names of installed modules."""

# Modules of Python, of our dependencies, and of what they use.
INNOCENT = ("csv", "typing", "json", "rich", "torch", "safetensors", "gymnasium", "numpy", "matplotlib")
OWN_ENV = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv
import own_help
gym.register("Own-v0", entry_point=CartPoleEnv, max_episode_steps=200)
"""


def crowded(place):
    """A folder with such files, which leave a mark if imported, and the module own_env of a user."""
    place.mkdir()
    for name in INNOCENT:
        (place / f"{name}.py").write_text(f"open({str(_mark(place))!r}, 'a').write('{name} ')\n")
    (place / "own_env.py").write_text(OWN_ENV)
    (place / "own_help.py").touch()
    return place


def unmarked(place):
    """True, or what was imported."""
    return not _mark(place).exists() or _mark(place).read_text()


def _mark(place):
    return place.parent / f"{place.name}-mark"

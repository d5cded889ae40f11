"""A working folder whose files have the names of installed modules."""

# Modules of Python, of our dependencies, and of theirs.
INSTALLED = ("csv", "typing", "json", "rich", "torch", "safetensors", "gymnasium", "numpy", "matplotlib")
OWN_ENV = """
import gymnasium as gym
from gymnasium.envs.classic_control import CartPoleEnv
import own_help
gym.register("Own-v0", entry_point=CartPoleEnv, max_episode_steps=200)
"""


def crowded(folder):
    """Create a folder with such files, which leave a mark if imported, and a user's module own_env."""
    folder.mkdir()
    for name in INSTALLED:
        (folder / f"{name}.py").write_text(f"open({str(_mark(folder))!r}, 'a').write('{name} ')\n")
    (folder / "own_env.py").write_text(OWN_ENV)
    (folder / "own_help.py").touch()
    return folder


def unmarked(folder):
    """Return True if nothing was imported, otherwise the names of the imported modules."""
    return not _mark(folder).exists() or _mark(folder).read_text()


def _mark(folder):
    return folder.parent / f"{folder.name}-mark"

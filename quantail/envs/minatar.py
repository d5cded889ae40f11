"""MinAtar games whose episodes depend only on their seed and actions."""

from typing import Any

import gymnasium as gym
import numpy as np

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")


class MinAtarEpisode(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that resets MinAtar's last action, so that sticky actions do not reach past a reset."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        result = self.env.reset(seed=seed, options=options)
        self.unwrapped.game.last_action = 0  # type: ignore[attr-defined]
        return result

    def render(self) -> Any:
        """Return a uint8 image, as Gymnasium specifies; MinAtar itself returns floats from 0 to 1."""
        picture = self.env.render()
        if isinstance(picture, np.ndarray) and picture.dtype.kind == "f":
            return (picture * 255).round().astype(np.uint8)
        return picture


def game_of(env: gym.Env[Any, Any]) -> Any | None:
    """Return MinAtar's game object of an unwrapped environment, or None for other environments."""
    is_minatar = type(env).__module__ == "minatar.gym"  # without importing it, which takes three seconds
    return env.game if is_minatar else None  # type: ignore[attr-defined]


def register() -> None:
    """Register MinAtar's ids with Gymnasium without importing MinAtar, which takes three seconds."""
    for game in GAMES:
        for version, minimal in (("v0", False), ("v1", True)):
            name = f"MinAtar/{game.title().replace('_', '')}-{version}"
            if name not in gym.registry:
                options = {"game": game, "use_minimal_action_set": minimal}
                gym.register(name, entry_point="minatar.gym:BaseEnv", kwargs=options)

"""MinAtar's games, each episode a function of its seed and its actions alone."""

from typing import Any

import gymnasium as gym
import numpy as np

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")


class MinAtarEpisode(gym.Wrapper[Any, Any, Any, Any]):
    """MinAtar's sticky actions remember the last action of the episode before; this forgets it."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        answer = self.env.reset(seed=seed, options=options)
        self.unwrapped.game.last_action = 0  # type: ignore[attr-defined]
        return answer

    def render(self) -> Any:
        """Bytes, as Gymnasium has them; MinAtar itself gives numbers from 0 to 1."""
        picture = self.env.render()
        if isinstance(picture, np.ndarray) and picture.dtype.kind == "f":
            return (picture * 255).round().astype(np.uint8)
        return picture


def game_of(env: gym.Env[Any, Any]) -> Any | None:
    """MinAtar's own game within an unwrapped environment, if it is one of MinAtar's."""
    is_one = type(env).__module__ == "minatar.gym"  # importing it would take three seconds
    return env.game if is_one else None  # type: ignore[attr-defined]


def register() -> None:
    """Make MinAtar's ids known to Gymnasium, as it does itself, without its import of three seconds."""
    for game in GAMES:
        for version, minimal in (("v0", False), ("v1", True)):
            name = f"MinAtar/{game.title().replace('_', '')}-{version}"
            if name not in gym.registry:
                options = {"game": game, "use_minimal_action_set": minimal}
                gym.register(name, entry_point="minatar.gym:BaseEnv", kwargs=options)

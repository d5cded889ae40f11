"""MinAtar games whose episodes depend only on their seed and actions."""

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from quantail.envs.family import EnvFamily, entry_point
from quantail.envs.human import JOYSTICK, Colour, Controls, HumanPlay, newest_key

Env = gym.Env[Any, Any]

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
BUTTONS = "nlurdf"  # MinAtar's actions, by number
NAMES = {"n": "nothing", "l": "left", "u": "up", "r": "right", "d": "down", "f": "fire"}
CELL = 12  # pixels of a cell, including a gap of one pixel
# One colour for each channel of a game.
HEX = "5ac8fa ffffff 787882 fa823c ff505a 78dc6e f0c83c 3c6ef0 be78fa fa96c8"
COLOURS = [(word[0], word[1], word[2]) for word in map(bytes.fromhex, HEX.split())]


class MinAtarEpisode(gym.Wrapper[Any, Any, Any, Any]):
    """Wrapper that resets MinAtar's last action, so that sticky actions do not reach past a reset."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        result = self.env.reset(seed=seed, options=options)
        _game(self).last_action = 0
        return result

    def render(self) -> Any:
        """Return a uint8 image, as Gymnasium specifies; MinAtar itself returns floats from 0 to 1."""
        picture = self.env.render()
        if isinstance(picture, np.ndarray) and picture.dtype.kind == "f":
            return (picture * 255).round().astype(np.uint8)
        return picture


class MinAtarPlay(HumanPlay):
    """A person plays MinAtar with a joystick, in brighter colours than its own."""

    def controls(self, env: Env) -> Controls:
        buttons = _buttons(env)
        meaning = {key: buttons.index(button) for key, button in JOYSTICK.items() if button in buttons}
        sides = {"lr": "Left and right arrows or A and D", "ud": "Up and down arrows or W and S"}
        moves = sides.get("".join(b for b in "lrud" if b in buttons), "Arrow keys or WASD")
        return Controls(newest_key(meaning, 0), f"{moves} move{', space fires' * ('f' in buttons)}", 8)

    def picture(self, env: Env) -> NDArray[np.uint8]:
        """Return the game in bright colours, because its own are too dark to distinguish."""
        state = _game(env).state()
        picture = np.zeros((*state.shape[:2], 3), np.uint8)
        for channel in reversed(range(state.shape[2])):
            picture[state[:, :, channel].astype(bool)] = COLOURS[channel % len(COLOURS)]
        picture = picture.repeat(CELL, axis=0).repeat(CELL, axis=1)
        picture[::CELL], picture[:, ::CELL] = 0, 0
        return picture

    def legend(self, env: Env) -> list[tuple[str, Colour]]:
        """Return the names of the channels in their order, with their colours."""
        channels: dict[str, int] = _game(env).env.channels
        names = [name.replace("_", " ") for name in sorted(channels, key=channels.__getitem__)]
        return [(name, COLOURS[i % len(COLOURS)]) for i, name in enumerate(names)]


class MinAtar(EnvFamily):
    """The five games of MinAtar. Its package takes three seconds to import, so only `make` does."""

    title = "MinAtar games"
    preset = "minatar"
    extra = "minatar"
    human = MinAtarPlay()

    def recognises(self, env: str) -> bool:
        return entry_point(env).startswith("minatar.gym")

    def register_ids(self) -> None:
        for game in GAMES:
            for suffix, minimal in (("v0", False), ("v1", True)):
                name = f"MinAtar/{game.title().replace('_', '')}-{suffix}"
                if name not in gym.registry:
                    options = {"game": game, "use_minimal_action_set": minimal}
                    gym.register(name, entry_point="minatar.gym:BaseEnv", kwargs=options)

    def make(self, env: str, render_mode: str | None = None) -> Env:
        return MinAtarEpisode(super().make(env, render_mode))

    def owns(self, env: Env) -> bool:
        return type(env.unwrapped).__module__ == "minatar.gym"

    def action_names(self, env: Env) -> Sequence[str]:
        return [NAMES[button] for button in _buttons(env)]

    def reseed(self, env: Env, seed: int) -> None:
        """Reseed Gymnasium's generator and that of the game."""
        super().reseed(env, seed)
        _game(env).seed(seed)

    def generator_states(self, env: Env) -> list[Any]:
        key = _game(env).random.get_state()
        own = {"key": key[1].tobytes(), "position": key[2:]}
        return [*super().generator_states(env), own]

    def check(self) -> str:
        self.register_ids()
        self.make("MinAtar/Breakout-v1").reset(seed=0)
        return f"MinAtar {version('MinAtar')}, Breakout works"


def _game(env: Env) -> Any:
    """Return MinAtar's own game object."""
    return env.unwrapped.game  # type: ignore[attr-defined]


def _buttons(env: Env) -> list[str]:
    """Return the button of each action."""
    return [BUTTONS[number] for number in env.unwrapped.action_set]  # type: ignore[attr-defined]

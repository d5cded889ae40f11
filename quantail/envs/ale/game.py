"""Atari games with the preprocessing of the paper, on top of the Arcade Learning Environment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.extras import require_extra

if TYPE_CHECKING:
    import ale_py

Frame = NDArray[np.uint8]


def area_average(screen: Frame, side: int) -> Frame:
    """Shrink a screen to side × side; each pixel is the mean of the area that it covers.

    This is OpenCV's INTER_AREA, which Dopamine uses, and equals `image.scale` of the original DQN.
    """
    height, width = screen.shape
    rows, columns = _coverage(height, side), _coverage(width, side)
    shrunk: Frame = np.rint(rows @ screen.astype(np.float32) @ columns.T).astype(np.uint8)
    return shrunk


def bilinear(screen: Frame, side: int) -> Frame:
    """Resize a screen to side × side with Pillow's bilinear filter."""
    from PIL import Image

    image = Image.fromarray(screen).resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(image)


@cache
def _coverage(source: int, target: int) -> NDArray[np.float32]:
    """Return the share of each target pixel that each source pixel covers, [target, source]."""
    edges = np.arange(target + 1) * (source / target)
    pixels = np.arange(source)
    begin = np.maximum(edges[:-1, None], pixels)
    end = np.minimum(edges[1:, None], pixels + 1)
    shares: NDArray[np.float32] = ((end - begin).clip(min=0) * (target / source)).astype(np.float32)
    return shares


class AtariGame(gym.Env[Frame, Any]):
    """An Atari game with one square greyscale frame per step and unclipped rewards.

    An action is repeated for `action_repeat` frames, and the observation is the maximum of the last two.
    An episode ends only at game over; `info["life_lost"]` says whether a life was lost in the step. An
    episode is a function of its seed and its actions, because no-ops and sticky actions are sampled here
    and the emulator itself is deterministic. `reset(options={"actions": [...]})` starts the episode
    after these of the console's 18 actions, one frame each.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(
        self,
        game: str,
        *,
        action_repeat: int = 4,
        no_ops: int = 30,
        sticky: float = 0.0,
        resize: str = "bilinear",
        frame_size: int = 84,
        mode: int | None = None,
        difficulty: int | None = None,
        all_actions: bool = False,
        render_mode: str | None = None,
    ) -> None:
        require_extra("atari", "an ALE game")
        import ale_py

        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self.render_mode = render_mode
        self.action_repeat, self.no_ops, self.sticky = action_repeat, no_ops, sticky
        self.resize, self.frame_size = resize, frame_size
        self.ale = ale_py.ALEInterface()
        self.ale.setFloat("repeat_action_probability", 0.0)
        self.ale.setInt("random_seed", 0)
        path = rom_path(game)
        if path is None:
            raise QuantailError(f"the ROM of {game} is not installed: see `quantail doctor`.")
        self.ale.loadROM(path)
        if mode is not None:
            self.ale.setMode(mode)
        if difficulty is not None:
            self.ale.setDifficulty(difficulty)
        self._initial_state = self.ale.cloneSystemState()
        self.action_set = self.ale.getLegalActionSet() if all_actions else self.ale.getMinimalActionSet()
        self.action_space = spaces.Discrete(len(self.action_set))
        self.observation_space = spaces.Box(0, 255, (frame_size, frame_size), np.uint8)
        height, width = self.ale.getScreenDims()
        self._screens = np.zeros((2, height, width), np.uint8)
        self._console_action = ale_py.Action  # by its number
        self._last_action = ale_py.Action.NOOP

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        super().reset(seed=seed)
        self._new_game()
        self._last_action = self._console_action.NOOP
        if options and "actions" in options:
            frame = self.fast_forward(options["actions"])
        else:
            self._play_no_ops()
            frame = self.fast_forward(())
        return frame, self._info(life_lost=False)

    def step(self, action: int) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        lives, reward, over = self.ale.lives(), 0, False
        self._screens[:] = 0
        for repeat in range(self.action_repeat):
            reward += self._emulate(self.action_set[action])
            over = self.ale.game_over(with_truncation=False)
            if over or repeat >= self.action_repeat - 2:
                self._screens[0] = self._screens[1]
                self.ale.getScreenGrayscale(self._screens[1])
            if over:
                break
        lost = over or self.ale.lives() < lives
        return self._frame(), float(reward), over, False, self._info(life_lost=lost)

    def fast_forward(self, actions: Sequence[int]) -> Frame:
        """Play some of the console's 18 actions, one frame each, and return the observation."""
        for action in actions:
            self.ale.act(self._console_action(action))
        self._screens[:] = 0
        self.ale.getScreenGrayscale(self._screens[1])
        return self._frame()

    def render(self) -> NDArray[np.uint8]:
        return self.ale.getScreenRGB()

    def _play_no_ops(self) -> None:
        for _ in range(int(self.np_random.integers(self.no_ops + 1))):
            self._emulate(self._console_action.NOOP)
            if self.ale.game_over(with_truncation=False):
                self._new_game()

    def _new_game(self) -> None:
        # Some games carry state over a mere reset, so restore the state after loading the ROM first.
        self.ale.restoreSystemState(self._initial_state)
        self.ale.reset_game()

    def _emulate(self, action: ale_py.Action) -> int:
        if self.sticky and self.np_random.random() < self.sticky:
            action = self._last_action
        self._last_action = action
        return self.ale.act(action)

    def _frame(self) -> Frame:
        screen = self._screens.max(axis=0)
        if self.resize == "area":
            return area_average(screen, self.frame_size)
        return bilinear(screen, self.frame_size)

    def _info(self, *, life_lost: bool) -> dict[str, Any]:
        return {"lives": self.ale.lives(), "life_lost": life_lost}


def rom_path(game: str) -> Path | None:
    """Return the file of a game's ROM, if it is installed."""
    require_extra("atari", "an ALE game")
    from ale_py import roms

    return roms.get_rom_path(game)

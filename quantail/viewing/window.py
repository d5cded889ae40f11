"""A window in which a person plays, and which records the games."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quantail.envs.adapt import Adapter
from quantail.envs.human import Colour
from quantail.envs.make import make_player
from quantail.envs.observations import observation_checksum
from quantail.errors import QuantailError
from quantail.evaluation.starts import MARK_EVERY, Game, Recording, read_recording
from quantail.extras import require_extra
from quantail.training.signals import StopSignals
from quantail.viewing.keys import Keyboard

Text = tuple[str, Colour]

HEIGHT = 630  # approximate height of the picture, in pixels of the screen
MIN_WIDTH, MARGIN = 760, 12
WHITE, GREY, GROUND = (255, 255, 255), (178, 184, 196), (24, 26, 32)


class Window:
    """Shows a picture, lines of text below it, and sometimes a message over it."""

    def __init__(self, title: str, picture: NDArray[np.uint8], scale: int, stretch: int) -> None:
        self.pygame = _open_display()
        self.size = (picture.shape[1] * stretch * scale, picture.shape[0] * scale)
        self.width = max(self.size[0], MIN_WIDTH)
        self.surface: Any = None
        self.title = title
        self.big, self.small = (self.pygame.font.Font(None, size) for size in (44, 26))

    def show(self, picture: NDArray[np.uint8], strip: list[list[Text]], message: list[str]) -> None:
        """Draw the picture, the strip of coloured text lines, and the message."""
        if self.surface is None:  # the height follows from the first strip
            height = self.size[1] + self._write(strip, draw=False) + MARGIN
            try:
                self.surface = self.pygame.display.set_mode((self.width, height))
            except self.pygame.error as error:
                raise QuantailError(
                    f"a window of {self.width}×{height} pixels cannot be opened: {error}."
                ) from None
            self.pygame.display.set_caption(self.title)
        image = self.pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self.surface.fill(GROUND)
        left = (self.width - self.size[0]) // 2
        self.surface.blit(self.pygame.transform.scale(image, self.size), (left, 0))
        self._write(strip, draw=True)
        if message:
            self._cover(message)
        self.pygame.display.flip()

    def _write(self, strip: list[list[Text]], draw: bool) -> int:
        """Draw or measure lines of text, wrapped at the window's edge; return their height."""
        top = MARGIN
        for line in strip:
            left = MARGIN
            for text, colour in line:
                words = self.small.render(text, True, colour)
                if left > MARGIN and left + words.get_width() > self.width - MARGIN:
                    left, top = MARGIN, top + self.small.get_linesize() + 4
                if draw:
                    self.surface.blit(words, (left, self.size[1] + top))
                left += words.get_width() + 2 * MARGIN
            top += self.small.get_linesize() + 4
        return top

    def _cover(self, message: list[str]) -> None:
        shade = self.pygame.Surface((self.width, self.size[1]), self.pygame.SRCALPHA)
        shade.fill((*GROUND, 190))
        self.surface.blit(shade, (0, 0))
        middle = self.size[1] // 2
        for row, (text, font) in enumerate(zip(message, (self.big, self.small), strict=True)):
            words = font.render(text, True, WHITE)
            self.surface.blit(words, ((self.width - words.get_width()) // 2, middle - 40 + 50 * row))


class Play:
    """Lets a person play one game after another; each is written to the file as soon as it ends."""

    def __init__(
        self,
        env: str,
        file: Path,
        recording: Recording,
        *,
        seed: int = 0,
        fps: float | None = None,
        scale: int | None = None,
    ) -> None:
        self.file, self.recording, self.seed = file, recording, seed
        _open_display()  # first, because an environment that draws with pygame fails without a display
        self.player = _make_visible(env)
        self.human = self.player.family.human
        self.controls = self.human.controls(self.player)
        self.fps = self.controls.rate if fps is None else fps  # 0 means as fast as possible
        self.keyboard = Keyboard()
        self.state: Literal["ready", "playing", "paused", "over"] = "ready"
        self._begin()
        picture = self.human.picture(self.player)
        scale = scale or max(1, HEIGHT // picture.shape[0])
        self.window = Window(f"{env} · quantail play", picture, scale, self.human.pixel_width)
        self._draw()

    def run(self) -> StopSignals:
        """Play until the window is closed or a signal arrives; return the signals."""
        clock = self.window.pygame.time.Clock()
        with StopSignals() as stop:
            try:
                while not stop.name and self.advance():
                    clock.tick(self.fps if self.state == "playing" else 30)
            finally:
                self.close()
        return stop

    def advance(self) -> bool:
        """Read the keys, take one action if a game is running, and draw; return whether to continue."""
        pygame = self.window.pygame
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                return False
            if event.type == pygame.WINDOWFOCUSLOST:
                self.keyboard = Keyboard()
                self.state = "paused" if self.state == "playing" else self.state
            elif event.type == pygame.KEYUP:
                self.keyboard.release(pygame.key.name(event.key))
            elif event.type == pygame.KEYDOWN:
                if event.key == pygame.K_ESCAPE:
                    return False
                self._press(pygame.key.name(event.key))
        keys = self.keyboard.take()
        if self.state == "playing":
            self._act(self.controls.action(keys))
        self._draw()
        return True

    def close(self) -> None:
        """Save the game in progress and close the window."""
        try:
            self._save()
        finally:
            self.window.pygame.display.quit()
            self.player.close()

    def _press(self, key: str) -> None:
        self.keyboard.press(key)
        if self.state == "ready":
            self.state = "playing"
        elif key == "r":
            self._save()
            self._begin()
            self.state = "playing"
        elif key == "p" and self.state != "over":
            self.state = "paused" if self.state == "playing" else "playing"

    def _begin(self) -> None:
        self._actions: list[int] = []
        self._marks: list[int] = []
        self._score, self._steps = 0.0, 0
        self._seen, _ = self.player.reset(seed=self.seed)

    def _act(self, action: int) -> None:
        self._seen, reward, terminated, truncated, _ = self.player.step(action)
        self._actions.append(action)
        self._score, self._steps = self._score + reward, self._steps + 1
        if self._steps % MARK_EVERY == 0:
            self._marks.append(observation_checksum(self._seen))
        if terminated or truncated:
            self._save()
            self.state = "over"

    def _save(self) -> None:
        """Append this game to the file, unless it is empty or already saved."""
        if not self._actions:
            return
        last = [observation_checksum(self._seen)] if self._steps % MARK_EVERY else []
        game = Game(self.seed, tuple(self._actions), self._score, (*self._marks, *last))
        saved = read_recording(self.file) if self.file.exists() else self.recording
        recording = replace(saved, games=(*saved.games, game))
        recording.write(self.file)
        self.recording, self.seed, self._actions = recording, self.seed + 1, []

    def _draw(self) -> None:
        games = len(self.recording.games) + (self.state != "over")
        status = (f"Score {self._score:g}", f"{self._steps:,} {self.human.unit}", f"Game {games}")
        keys = (self.controls.words, "P pause", "R next game", "Esc save and quit")
        strip = [[(word, WHITE) for word in status], [(word, GREY) for word in keys]]
        strip[0].append((f"Recording to {self.file.name}", GREY))
        if legend := self.human.legend(self.player):
            strip.append(legend)
        message = {
            "ready": ["Ready?", "Press any key to begin"],
            "playing": [],
            "paused": ["Paused", "Press P to continue"],
            "over": [f"Game over, score {self._score:g}", "Press R for the next game, Esc to quit"],
        }[self.state]
        self.window.show(self.human.picture(self.player), strip, message)


def _make_visible(env: str) -> Adapter:
    """Make the environment with an RGB renderer, or raise an error that says it has none."""
    no_picture = QuantailError(
        f"{env} cannot be played in a window: it renders no RGB picture (rgb_array)."
    )
    try:
        player = make_player(env, render_mode="rgb_array")
    except QuantailError:
        make_player(env).close()  # raises any error that has nothing to do with rendering
        raise no_picture from None
    player.reset(seed=0)
    try:
        picture = player.render()
    except Exception:
        raise no_picture from None
    if not (isinstance(picture, np.ndarray) and picture.ndim == 3 and picture.shape[2] == 3):
        raise no_picture
    return player


def _open_display() -> Any:
    """Return pygame with an open display, or raise an error that says what is missing."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    require_extra("play", "quantail play")
    import pygame

    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    try:
        if sys.platform == "linux" and not any(os.environ.get(name) for name in names):
            raise pygame.error("neither DISPLAY nor WAYLAND_DISPLAY is set")
        pygame.display.init()
        pygame.font.init()
        if pygame.display.get_driver() == "offscreen" and not os.environ.get("SDL_VIDEODRIVER"):
            raise pygame.error("only an offscreen driver was found")
    except pygame.error as error:
        raise QuantailError(f"there is no display to open a window on: {error}.") from None
    return pygame

"""A window in which a person plays, and the recording of what is played."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from quantail.envs.adapt import Adapter
from quantail.envs.make import kind_of
from quantail.envs.player import make_player
from quantail.errors import QuantailError
from quantail.evaluation.starts import MARK_EVERY, Game, Recording, mark, read_recording
from quantail.training.signals import StopSignals
from quantail.viewing.keys import Keyboard, controls_of

Colour = tuple[int, int, int]
Text = tuple[str, Colour]

HEIGHT = 630  # of the picture, about, in pixels of the screen
LEAST_WIDTH, MARGIN = 760, 12
CELL = 12  # pixels of a MinAtar cell, one of them a gap
WHITE, GREY, GROUND = (255, 255, 255), (178, 184, 196), (24, 26, 32)
# One for each kind of thing in a MinAtar game.
HEX = "5ac8fa ffffff 787882 fa823c ff505a 78dc6e f0c83c 3c6ef0 be78fa fa96c8"
CELLS = [(word[0], word[1], word[2]) for word in map(bytes.fromhex, HEX.split())]


class Window:
    """A picture, a strip of words below it, and at times a message over it."""

    def __init__(self, title: str, picture: NDArray[np.uint8], scale: int, stretch: int) -> None:
        self.pygame = _open_display()
        self.size = (picture.shape[1] * stretch * scale, picture.shape[0] * scale)
        self.width = max(self.size[0], LEAST_WIDTH)
        self.surface: Any = None
        self.title = title
        self.big, self.small = (self.pygame.font.Font(None, size) for size in (44, 26))

    def show(self, picture: NDArray[np.uint8], strip: list[list[Text]], message: list[str]) -> None:
        """Draw everything anew; the strip is some lines of coloured words."""
        if self.surface is None:  # as high as the first strip needs
            height = self.size[1] + self._write(strip, draw=False) + MARGIN
            try:
                self.surface = self.pygame.display.set_mode((self.width, height))
            except self.pygame.error as error:
                raise QuantailError(
                    f"a window of {self.width}×{height} does not open: {error}."
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
        """Lines of words, each broken where the window ends; how high they are together."""
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
    """Games that a person plays one after another; each is in the file as soon as it ends."""

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
        _open_display()  # before the environment, which may draw with pygame too and fail for its sake
        self.kind, self.player = kind_of(env), _make_visible(env)
        self.controls = controls_of(self.kind, self.player)
        self.fps = self.controls.rate if fps is None else fps  # 0 is as fast as possible
        self.keyboard = Keyboard()
        self.state: Literal["ready", "playing", "paused", "over"] = "ready"
        self._begin()
        picture = self._picture()
        scale = scale or max(1, HEIGHT // picture.shape[0])
        self.window = Window(f"{env} · quantail play", picture, scale, 2 if self.kind == "atari" else 1)
        self._draw()

    def run(self) -> StopSignals:
        """Play until the window is closed or a signal comes; which one, if any."""
        clock = self.window.pygame.time.Clock()
        with StopSignals() as stop:
            try:
                while not stop.name and self.turn():
                    clock.tick(self.fps if self.state == "playing" else 30)
            finally:
                self.close()
        return stop

    def turn(self) -> bool:
        """Take in the keys, play one action if it is time to, and draw; whether to go on."""
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
        """Save the game that is being played, and close the window."""
        try:
            self._keep()
        finally:
            self.window.pygame.display.quit()
            self.player.close()

    def _press(self, key: str) -> None:
        self.keyboard.press(key)
        if self.state == "ready":
            self.state = "playing"
        elif key == "r":
            self._keep()
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
            self._marks.append(mark(self._seen))
        if terminated or truncated:
            self._keep()
            self.state = "over"

    def _keep(self) -> None:
        """Add this game to the file, unless nothing was played or it is there already."""
        if not self._actions:
            return
        marks = [*self._marks, mark(self._seen)] if self._steps % MARK_EVERY else self._marks
        game = Game(self.seed, tuple(self._actions), self._score, tuple(marks))
        there = read_recording(self.file) if self.file.exists() else self.recording
        recording = replace(there, games=(*there.games, game))
        recording.write(self.file)
        self.recording, self.seed, self._actions = recording, self.seed + 1, []

    def _picture(self) -> NDArray[np.uint8]:
        return _cells(self.player) if self.kind == "minatar" else np.asarray(self.player.render())

    def _draw(self) -> None:
        games = len(self.recording.games) + (self.state != "over")
        steps = "frames" if self.kind == "atari" else "steps"
        told = (f"Score {self._score:g}", f"{self._steps:,} {steps}", f"Game {games}")
        keys = (self.controls.words, "P pauses", "R next game", "Esc saves and ends")
        strip = [[(word, WHITE) for word in told], [(word, GREY) for word in keys]]
        strip[0].append((f"Recording to {self.file.name}", GREY))
        if self.kind == "minatar":
            things = _things(self.player)
            strip.append([(name, CELLS[i % len(CELLS)]) for i, name in enumerate(things)])
        message = {
            "ready": ["Ready?", "Press any key to begin"],
            "playing": [],
            "paused": ["Paused", "Press P to go on"],
            "over": [f"Game over, score {self._score:g}", "Press R for the next game, Esc to end"],
        }[self.state]
        self.window.show(self._picture(), strip, message)


def _make_visible(env: str) -> Adapter:
    """The environment with pictures, or a sentence when it has none."""
    blind = QuantailError(f"{env} cannot be played in a window: it draws no RGB picture (rgb_array).")
    try:
        player = make_player(env, render_mode="rgb_array")
    except QuantailError:
        make_player(env).close()  # raises again what has nothing to do with pictures
        raise blind from None
    player.reset(seed=0)
    try:
        picture = player.render()
    except Exception:
        raise blind from None
    if not (isinstance(picture, np.ndarray) and picture.ndim == 3 and picture.shape[2] == 3):
        raise blind
    return player


def _things(player: Adapter) -> list[str]:
    """What there is in a MinAtar game, in the order of its channels."""
    channels: dict[str, int] = player.unwrapped.game.env.channels  # type: ignore[attr-defined]
    return [name.replace("_", " ") for name, _ in sorted(channels.items(), key=lambda item: item[1])]


def _cells(player: Adapter) -> NDArray[np.uint8]:
    """A MinAtar game in bright colours; its own are too dark to tell apart."""
    state = player.unwrapped.game.state()  # type: ignore[attr-defined]
    picture = np.zeros((*state.shape[:2], 3), np.uint8)
    for channel in reversed(range(state.shape[2])):
        picture[state[:, :, channel].astype(bool)] = CELLS[channel % len(CELLS)]
    picture = picture.repeat(CELL, axis=0).repeat(CELL, axis=1)
    picture[::CELL], picture[:, ::CELL] = 0, 0
    return picture


def _open_display() -> Any:
    """Pygame with a display, or a sentence on what is missing."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    try:
        import pygame
    except ImportError:
        raise QuantailError("a window takes pygame: pip install 'quantail[play]'.") from None
    names = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    try:
        if sys.platform == "linux" and not any(os.environ.get(name) for name in names):
            raise pygame.error("neither DISPLAY nor WAYLAND_DISPLAY is set")
        pygame.display.init()
        pygame.font.init()
        if pygame.display.get_driver() == "offscreen" and not os.environ.get("SDL_VIDEODRIVER"):
            raise pygame.error("only an offscreen one was found")
    except pygame.error as error:
        raise QuantailError(f"there is no display to open a window on: {error}.") from None
    return pygame

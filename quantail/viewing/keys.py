"""The keys with which a person plays an environment."""

from collections.abc import Callable
from dataclasses import dataclass

from quantail.envs.adapt import Adapter
from quantail.envs.make import Kind
from quantail.envs.names import BUTTONS as MINATAR_BUTTONS

BUTTONS = {"left": "l", "up": "u", "right": "r", "down": "d", "space": "f"}
BUTTONS |= {"a": "l", "w": "u", "d": "r", "s": "d"}  # pygame's names of the keys
CONSOLE = {(0, 0): 0, (0, 1): 2, (1, 0): 3, (-1, 0): 4, (0, -1): 5}  # ALE actions by direction (x, y)
CONSOLE |= {(1, 1): 6, (-1, 1): 7, (1, -1): 8, (-1, -1): 9}


@dataclass(frozen=True)
class Controls:
    """The meaning of the keys in an environment."""

    action: Callable[[list[str]], int]  # maps the pressed keys, newest last, to an action
    words: str  # instructions for the player
    rate: float  # actions per second


def controls_of(kind: Kind, player: Adapter) -> Controls:
    """Return the Atari joystick, the buttons of MinAtar, or one key for each action."""
    first, count = player.actions.start, player.actions.count
    if kind == "atari":
        return Controls(console_action, "Arrow keys or WASD move, space fires", 60)
    if kind == "minatar":
        buttons = [MINATAR_BUTTONS[number] for number in player.unwrapped.action_set]  # type: ignore[attr-defined]
        meaning = {key: buttons.index(button) for key, button in BUTTONS.items() if button in buttons}
        sides = {"lr": "Left and right arrows or A and D", "ud": "Up and down arrows or W and S"}
        moves = sides.get("".join(b for b in "lrud" if b in buttons), "Arrow keys or WASD")
        return Controls(_newest(meaning, 0), f"{moves} move{', space fires' * ('f' in buttons)}", 8)
    meaning = {str(number + 1): first + number for number in range(min(count, 9))}
    words = f"Keys 1 to {len(meaning)} choose actions; no key means 1"
    if count == 2:
        meaning |= {"left": first, "right": first + 1}
        words = "Left and right arrows choose actions; no key means left"
    return Controls(_newest(meaning, first), words, player.metadata.get("render_fps") or 15)


def console_action(keys: list[str]) -> int:
    """Return which of the 18 ALE actions the keys mean together; opposite directions cancel out."""
    down = {BUTTONS.get(key) for key in keys}
    action = CONSOLE[("r" in down) - ("l" in down), ("u" in down) - ("d" in down)]
    return action if "f" not in down else action + 8 if action else 1


def _newest(meaning: dict[str, int], idle: int) -> Callable[[list[str]], int]:
    return lambda keys: next((meaning[key] for key in reversed(keys) if key in meaning), idle)


class Keyboard:
    """Tracks the keys that were pressed since the last action, so that a short tap counts once."""

    def __init__(self) -> None:
        self._down: dict[str, bool] = {}  # key -> whether no action has used it yet
        self._released: set[str] = set()

    def press(self, key: str) -> None:
        self._down.pop(key, None)
        self._down[key] = True
        self._released.discard(key)

    def release(self, key: str) -> None:
        if self._down.get(key):
            self._released.add(key)
        else:
            self._down.pop(key, None)

    def take(self) -> list[str]:
        """Return the keys for one action, the newest last."""
        keys = list(self._down)
        self._down = {key: False for key in keys if key not in self._released}
        self._released.clear()
        return keys

"""What keys mean in an environment that a person plays."""

from collections.abc import Callable
from dataclasses import dataclass

from quantail.envs.adapt import Adapter
from quantail.envs.make import Kind
from quantail.envs.names import BUTTONS as MINATAR_BUTTONS

BUTTONS = {"left": "l", "up": "u", "right": "r", "down": "d", "space": "f"}
BUTTONS |= {"a": "l", "w": "u", "d": "r", "s": "d"}  # by the names that pygame gives to keys
CONSOLE = {(0, 0): 0, (0, 1): 2, (1, 0): 3, (-1, 0): 4, (0, -1): 5}  # its actions by direction
CONSOLE |= {(1, 1): 6, (-1, 1): 7, (1, -1): 8, (-1, -1): 9}


@dataclass(frozen=True)
class Controls:
    """What keys do in an environment."""

    action: Callable[[list[str]], int]  # of the keys that are down, the newest last
    words: str
    rate: float  # actions a second


def controls_of(kind: Kind, player: Adapter) -> Controls:
    """The console's stick and button, MinAtar's buttons, or a key for each action."""
    first, count = player.actions.start, player.actions.count
    if kind == "atari":
        return Controls(console_action, "Arrow keys or WASD move, space fires", 60)
    if kind == "minatar":
        there = [MINATAR_BUTTONS[number] for number in player.unwrapped.action_set]  # type: ignore[attr-defined]
        meaning = {key: there.index(button) for key, button in BUTTONS.items() if button in there}
        sides = {"lr": "Left and right arrows or A and D", "ud": "Up and down arrows or W and S"}
        moves = sides.get("".join(b for b in "lrud" if b in there), "Arrow keys or WASD")
        return Controls(_newest(meaning, 0), f"{moves} move{', space fires' * ('f' in there)}", 8)
    meaning = {str(number + 1): first + number for number in range(min(count, 9))}
    words = f"Keys 1 to {len(meaning)} choose actions, no key is 1"
    if count == 2:
        meaning |= {"left": first, "right": first + 1}
        words = "Left and right arrows choose actions, no key is left"
    return Controls(_newest(meaning, first), words, player.metadata.get("render_fps") or 15)


def console_action(keys: list[str]) -> int:
    """Which of the console's 18 actions the keys are together; opposite ones are none."""
    down = {BUTTONS.get(key) for key in keys}
    action = CONSOLE[("r" in down) - ("l" in down), ("u" in down) - ("d" in down)]
    return action if "f" not in down else action + 8 if action else 1


def _newest(meaning: dict[str, int], idle: int) -> Callable[[list[str]], int]:
    return lambda keys: next((meaning[key] for key in reversed(keys) if key in meaning), idle)


class Keyboard:
    """The keys that are down, or were since the last action: a short tap counts, and counts once."""

    def __init__(self) -> None:
        self._down: dict[str, bool] = {}  # whether no action has seen it yet
        self._let_go: set[str] = set()

    def press(self, key: str) -> None:
        self._down.pop(key, None)
        self._down[key] = True
        self._let_go.discard(key)

    def release(self, key: str) -> None:
        if self._down.get(key):
            self._let_go.add(key)
        else:
            self._down.pop(key, None)

    def take(self) -> list[str]:
        """The keys for one action, the newest last."""
        keys = list(self._down)
        self._down = {key: False for key in keys if key not in self._let_go}
        self._let_go.clear()
        return keys

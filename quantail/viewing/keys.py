"""The keyboard of a person who plays an environment."""


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

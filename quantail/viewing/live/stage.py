"""What one tab of the browser shows: one or two players in step, on the same seed."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from quantail.envs.names import picture_legend
from quantail.errors import QuantailError
from quantail.risk import MEASURES, RiskMeasure
from quantail.viewing.live.knobs import OWN, measures, turned
from quantail.viewing.live.player import Player
from quantail.viewing.live.shelf import Shelf
from quantail.viewing.scenes import TAUS, densities, level_weights

SPEEDS = (1, 2, 4, 8, 15, 30, 60)  # decisions a second
STRIP = 240  # newest steps in the strip
GRID = 120  # points of a density
PHOTO = 256 * 256  # pixels from which a picture is sent as JPEG
WIDEST = 640  # pixels of a picture


class Stage:
    """The players of a tab, and what its controls are set to."""

    def __init__(self, shelf: Shelf, seed: int = 1) -> None:
        self.shelf = shelf
        self.players: list[Player] = []
        self.runs: list[int] = []
        self.seed = seed
        self.playing = True
        self.density = False
        self._held = 0
        agent = shelf.agent(0, None)
        self._add(0, Player(agent, agent.risk))
        rate = int(self.players[0].env.metadata.get("render_fps") or 15)
        self.speed = max(speed for speed in SPEEDS if speed <= max(1, min(rate, 30)))

    def close(self) -> None:
        """Let go of the environments."""
        for player in self.players:
            player.close()

    def step(self) -> None:
        """One decision of every player; a second after the last one's end, the next episode."""
        if not self.over:
            for player in self.players:
                player.step()
        elif self._held < self.speed:
            self._held += 1
        else:
            self.restart(self.seed + 1)

    @property
    def over(self) -> bool:
        """Whether every player's episode is."""
        return all(player.over for player in self.players)

    def restart(self, seed: int) -> None:
        """Begin an episode of this seed in every pane."""
        self.seed, self._held = seed, 0
        for player in self.players:
            player.restart(seed)

    def do(self, asked: Any) -> None:
        """What a control of the page asks for."""
        command = asked.get("do") if isinstance(asked, dict) else None
        if not isinstance(command, str) or command not in COMMANDS:
            raise QuantailError("the page asked for something that there is not.")
        COMMANDS[command](self, asked)

    def hello(self) -> dict[str, Any]:
        """What the page needs once."""
        return {
            "env": self.players[0].env.name,
            "legend": picture_legend(self.players[0].env),
            "runs": self.shelf.describe(),
            "measures": measures(self.players[0].agent.risk),
            "speeds": SPEEDS,
            "taus": _plain(TAUS),
            "discount": self.shelf.infos[0].settings.discount,
        }

    def show(self) -> dict[str, Any]:
        """Everything that is on the screen now."""
        return {
            "seed": self.seed,
            "playing": self.playing,
            "speed": self.speed,
            "density": self.density,
            "panes": [
                pane_of(player, run, self.density)
                for player, run in zip(self.players, self.runs, strict=True)
            ],
        }

    # What the controls do

    def _play(self, asked: dict[str, Any]) -> None:
        self.playing = bool(asked.get("on"))

    def _step_once(self, asked: dict[str, Any]) -> None:
        self.playing = False
        self._held = self.speed  # no wait at an end
        self.step()

    def _restart(self, asked: dict[str, Any]) -> None:
        self.restart(_whole("seed", asked.get("seed", self.seed), 0, 2**31 - 1))

    def _speed(self, asked: dict[str, Any]) -> None:
        speed = asked.get("speed")
        if speed not in SPEEDS:
            raise QuantailError(f"speed takes one of {', '.join(map(str, SPEEDS))}.")
        self.speed = int(speed)

    def _view(self, asked: dict[str, Any]) -> None:
        self.density = bool(asked.get("density"))

    def _risk(self, asked: dict[str, Any]) -> None:
        player = self._player(asked)
        own = asked.get("name") == OWN
        player.turn(player.agent.risk if own else turned(asked.get("name"), asked.get("eta")))

    def _agent(self, asked: dict[str, Any]) -> None:
        player, pane = self._player(asked), asked["pane"]
        run = _whole("run", asked.get("run"), 0, len(self.shelf.folders) - 1)
        agent = self.shelf.agent(run, asked.get("checkpoint"))
        if run == self.runs[pane]:
            player.take(agent)
            return
        self.players[pane] = Player(agent, player.risk)  # runs may see the environment differently
        self.runs[pane] = run
        player.close()
        self.restart(self.seed)

    def _compare(self, asked: dict[str, Any]) -> None:
        if bool(asked.get("on")) == (len(self.players) == 2):
            return
        if len(self.players) == 2:
            self.players.pop().close()
            self.runs.pop()
            return
        first = self.players[0]
        run = 1 if len(self.shelf.folders) > 1 else 0
        agent = self.shelf.agent(run, None) if run else first.agent
        self._add(run, Player(agent, agent.risk if run else _contrast(first.risk)))
        self.restart(self.seed)

    def _add(self, run: int, player: Player) -> None:
        player.restart(self.seed)
        self.players.append(player)
        self.runs.append(run)

    def _player(self, asked: dict[str, Any]) -> Player:
        pane = _whole("pane", asked.get("pane"), 0, len(self.players) - 1)
        return self.players[pane]


COMMANDS: dict[str, Any] = {
    "play": Stage._play,
    "step": Stage._step_once,
    "restart": Stage._restart,
    "speed": Stage._speed,
    "view": Stage._view,
    "risk": Stage._risk,
    "agent": Stage._agent,
    "compare": Stage._compare,
}


def _contrast(risk: RiskMeasure) -> RiskMeasure:
    """Another attitude to put beside this one."""
    return turned("cvar", 0.1) if risk.name == "neutral" else turned("neutral", None)


def pane_of(player: Player, run: int, density: bool) -> dict[str, Any]:
    """All that is shown of a player."""
    scene, trace = player.scene, player.trace
    begin = max(0, len(trace.rewards) - STRIP)
    returns, known = trace.came(player.agent.settings.discount, begin)
    shown: dict[str, Any] = {
        "run": run,
        "checkpoint": str(player.agent.checkpoint),
        "risk": str(player.risk),
        "measure": player.risk.name if player.risk.name in MEASURES else OWN,
        "eta": getattr(player.risk, "eta", None),
        "weights": _plain(level_weights(player.risk)),
        "picture": _address(scene.picture),
        "names": player.names,
        "means": _plain(scene.means),
        "values": _plain(scene.values),
        "chosen": scene.chosen,
        "steps": player.steps,
        "score": round(player.score, 6),
        "over": player.over,
        "strip": {
            "begin": begin,
            "predicted": _plain(trace.predicted[begin:]),
            "rewards": _plain(trace.rewards[begin:]),
            "came": [
                value if sure else None for value, sure in zip(_plain(returns), known, strict=True)
            ],
        },
    }
    if density:
        low, high = float(scene.law.min()), float(scene.law.max())
        room = 0.1 * max(high - low, 0.1)
        grid = np.linspace(low - room, high + room, GRID)
        shown |= {"grid": _plain(grid), "density": _plain(densities(scene.law, grid).T)}
    else:
        shown["law"] = _plain(scene.law.T)
    return shown


def _address(picture: NDArray[np.uint8] | None) -> str | None:
    """A picture as an address that holds it."""
    if picture is None:
        return None
    image = Image.fromarray(picture)
    if image.width > WIDEST:
        image = image.resize((WIDEST, max(1, image.height * WIDEST // image.width)))
    kind = "jpeg" if image.width * image.height >= PHOTO else "png"
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 85} if kind == "jpeg" else {"compress_level": 1}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _plain(numbers: Any) -> Any:
    """Numbers as JSON has them, with the digits that a screen can show: by how far they are apart."""
    array = np.asarray(numbers, np.float64)
    spread = float(np.ptp(array)) if array.size else 0.0
    scale = max(spread, 1e-6 * float(np.abs(array).max()) if array.size else 0.0)
    digits = 4 if scale < 1e-12 else int(np.clip(4 - np.floor(np.log10(scale)), 0, 12))
    return np.round(array, digits).tolist()


def _whole(name: str, value: object, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise QuantailError(f"{name} takes a whole number from {least} to {most}.")
    return value

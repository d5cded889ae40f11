"""The state of one browser tab: one or two players that play the same seed in step."""

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quantail.errors import QuantailError
from quantail.risk import CVaR, Neutral, RiskMeasure, parse_risk
from quantail.validation import one_of, whole_number
from quantail.viewing.live.player import Player
from quantail.viewing.live.registry import Offer
from quantail.viewing.live.sliders import OWN, make_measure, measures, name_of
from quantail.viewing.scenes import TAUS, densities, tau_weights

SPEEDS = (1, 2, 4, 8, 15, 30, 60)  # decisions per second
STRIP_STEPS = 240  # newest steps of the episode that are shown
GRID_POINTS = 120  # of a density
JPEG_PIXELS = 256 * 256  # a picture with at least so many pixels is sent as JPEG
MAX_WIDTH = 640  # of a picture, in pixels
MAX_SEED = 2**31 - 1


class Session:
    """The players of a tab, and the state of its controls."""

    def __init__(self, offer: Offer, seed: int = 1) -> None:
        self.offer, self.registry = offer, offer.registry
        self.players: list[Player] = []
        self.runs: list[int] = []
        self.seed = seed
        self.playing = True
        self.density = False
        self._waited = 0
        agent = self.registry.agent(0, None)
        for risk in offer.risks or (agent.risk,):
            self._add(0, Player(agent, parse_risk(risk)))
        rate = offer.speed or int(self.players[0].env.metadata.get("render_fps") or 15)
        self.speed = max(speed for speed in SPEEDS if speed <= max(1, min(rate, 30)))

    def close(self) -> None:
        """Close the environments."""
        for player in self.players:
            player.close()

    def step(self) -> None:
        """Take one step with every player; one second after all are over, start the next episode."""
        if not self.over:
            for player in self.players:
                player.step()
        elif self._waited < self.speed:
            self._waited += 1
        else:
            self._next({})

    @property
    def over(self) -> bool:
        """Whether the episodes of all players are over."""
        return all(player.over for player in self.players)

    def restart(self, seed: int) -> None:
        """Start an episode with this seed in every pane."""
        self.seed, self._waited = seed, 0
        for player in self.players:
            player.restart(seed)

    def do(self, command: Any) -> None:
        """Execute a command of the page."""
        name = command.get("do") if isinstance(command, dict) else None
        if not isinstance(name, str) or name not in COMMANDS:
            raise QuantailError("the page sent an unknown command.")
        COMMANDS[name](self, command)

    def hello(self) -> dict[str, Any]:
        """Return what the page needs once, when it connects."""
        return {
            "env": self.players[0].env.name,
            "legend": self.players[0].env.legend(),
            "note": self.offer.note,
            "runs": self.registry.describe(),
            "measures": measures(self.players[0].agent.risk),
            "speeds": SPEEDS,
            "taus": _rounded(TAUS),
            "discount": self.registry.infos[0].config.learner.discount,
        }

    def show(self) -> dict[str, Any]:
        """Return everything that is shown now."""
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

    # Commands of the page

    def _play(self, command: dict[str, Any]) -> None:
        self.playing = bool(command.get("on"))

    def _step_once(self, command: dict[str, Any]) -> None:
        self.playing = False
        self._waited = self.speed  # do not wait at the end of an episode
        self.step()

    def _restart(self, command: dict[str, Any]) -> None:
        self.restart(whole_number("seed", command.get("seed", self.seed), 0, MAX_SEED))

    def _next(self, command: dict[str, Any]) -> None:
        self.restart(min(self.seed + 1, MAX_SEED))

    def _speed(self, command: dict[str, Any]) -> None:
        self.speed = one_of("speed", command.get("speed"), SPEEDS)

    def _view(self, command: dict[str, Any]) -> None:
        self.density = bool(command.get("density"))

    def _risk(self, command: dict[str, Any]) -> None:
        player = self._player(command)
        own = command.get("name") == OWN
        player.set_risk(
            player.agent.risk if own else make_measure(command.get("name"), command.get("eta"))
        )

    def _agent(self, command: dict[str, Any]) -> None:
        player, pane = self._player(command), command["pane"]
        run = whole_number("run", command.get("run"), 0, len(self.registry.folders) - 1)
        agent = self.registry.agent(run, command.get("checkpoint"))
        if run == self.runs[pane]:
            player.set_agent(agent)
            return
        # Another run may preprocess the environment differently, so it gets its own player.
        self.players[pane] = Player(agent, player.risk)
        self.runs[pane] = run
        player.close()
        self.restart(self.seed)

    def _compare(self, command: dict[str, Any]) -> None:
        if bool(command.get("on")) == (len(self.players) == 2):
            return
        if len(self.players) == 2:
            self.players.pop().close()
            self.runs.pop()
            return
        first = self.players[0]
        run = 1 if len(self.registry.folders) > 1 else 0
        agent = self.registry.agent(run, None) if run else first.agent
        self._add(run, Player(agent, agent.risk if run else _contrast(first.risk)))
        self.restart(self.seed)

    def _add(self, run: int, player: Player) -> None:
        player.restart(self.seed)
        self.players.append(player)
        self.runs.append(run)

    def _player(self, command: dict[str, Any]) -> Player:
        pane = whole_number("pane", command.get("pane"), 0, len(self.players) - 1)
        return self.players[pane]


COMMANDS: dict[str, Any] = {
    "play": Session._play,
    "step": Session._step_once,
    "restart": Session._restart,
    "next": Session._next,
    "speed": Session._speed,
    "view": Session._view,
    "risk": Session._risk,
    "agent": Session._agent,
    "compare": Session._compare,
}


def _contrast(risk: RiskMeasure) -> RiskMeasure:
    """Return another risk measure to compare with this one."""
    return CVaR(0.1) if risk.is_neutral else Neutral()


def pane_of(player: Player, run: int, density: bool) -> dict[str, Any]:
    """Return everything that is shown of a player."""
    scene, trace = player.scene, player.trace
    begin = max(0, len(trace.rewards) - STRIP_STEPS)
    returns, known = trace.actual_returns(player.agent.config.learner.discount, begin)
    weights = tau_weights(player.risk)
    shown: dict[str, Any] = {
        "run": run,
        "checkpoint": str(player.agent.checkpoint),
        "risk": str(player.risk),
        "measure": name_of(player.risk),
        "eta": getattr(player.risk, "eta", None),
        "weights": None if weights is None else _rounded(weights),
        "picture": _data_url(scene.picture),
        "names": player.names,
        "means": _rounded(scene.means),
        "values": _rounded(scene.values),
        "chosen": scene.chosen,
        "allowed": None if scene.allowed is None else scene.allowed.tolist(),
        "crossing": None if scene.crossing is None else round(scene.crossing, 4),
        "steps": player.steps,
        "score": round(player.score, 6),
        "over": player.over,
        "strip": {
            "begin": begin,
            "predicted": _rounded(trace.predicted[begin:]),
            "rewards": _rounded(trace.rewards[begin:]),
            "actual": [
                value if is_known else None
                for value, is_known in zip(_rounded(returns), known, strict=True)
            ],
        },
    }
    exact = player.exact
    if density:
        shown_returns = scene.distribution if exact is None else np.stack([scene.distribution, exact])
        low, high = float(shown_returns.min()), float(shown_returns.max())
        margin = 0.1 * max(high - low, 0.1)
        grid = np.linspace(low - margin, high + margin, GRID_POINTS)
        shown |= {"grid": _rounded(grid), "density": _rounded(densities(scene.distribution, grid).T)}
        if exact is not None:
            shown["exact"] = _rounded(densities(exact, grid).T)
    else:
        shown["distribution"] = _rounded(scene.distribution.T)
        if exact is not None:
            shown["exact"] = _rounded(exact.T)
    if exact is not None:
        distances = np.abs(scene.distribution - exact).mean(axis=0)  # 1-Wasserstein
        shown |= {"distance": round(float(distances[scene.chosen]), 3), "target": player.target}
    return shown


def _data_url(picture: NDArray[np.uint8] | None) -> str | None:
    """Return a picture as a data URL."""
    from PIL import Image

    if picture is None:
        return None
    image = Image.fromarray(picture)
    if image.width > MAX_WIDTH:
        image = image.resize((MAX_WIDTH, max(1, image.height * MAX_WIDTH // image.width)))
    kind = "jpeg" if image.width * image.height >= JPEG_PIXELS else "png"
    buffer = io.BytesIO()
    image.save(buffer, kind, **({"quality": 85} if kind == "jpeg" else {"compress_level": 1}))
    return f"data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}"


def _rounded(numbers: Any) -> Any:
    """Return numbers for JSON, rounded to digits that a screen can show, given their range."""
    array = np.asarray(numbers, np.float64)
    spread = float(np.ptp(array)) if array.size else 0.0
    scale = max(spread, 1e-6 * float(np.abs(array).max()) if array.size else 0.0)
    digits = 4 if scale < 1e-12 else int(np.clip(4 - np.floor(np.log10(scale)), 0, 12))
    return np.round(array, digits).tolist()

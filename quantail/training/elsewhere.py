"""Acting in other processes, on one machine or many, as Ape-X does (Horgan et al. 2018).

Actors play with weights that are a little old, each with an ε of its own; the learner takes what comes.
Which transitions come first depends on the machines, so a run is not repeatable bit for bit.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail import seeds
from quantail.acting.actor import Actor, Episode, Transition
from quantail.cluster import connect
from quantail.envs import EnvSource, make
from quantail.envs.adapt import newest_frame
from quantail.errors import QuantailError
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.risk import RiskMeasure
from quantail.settings import Settings
from quantail.training.clock import Clock
from quantail.training.gathering import CHUNK, Cut
from quantail.training.run_folder import RunInfo

Array = NDArray[Any]
FRESH = 16  # updates after which the weights are sent anew
PATIENCE = 1.0  # seconds that are waited for a report before other things are looked at
SILENCE = 60.0  # seconds without any report that are worth a word
DEATHS = 3  # in a row, of an actor that never reported: then something is wrong with all of them


@dataclass(frozen=True)
class Orders:
    """How an actor is to play its next chunk."""

    version: int  # of the weights
    epsilon: float
    risk: RiskMeasure


class Player:
    """What runs in a process of its own: some environments, a network, an ε."""

    def __init__(
        self, info: RunInfo, source: EnvSource, risk: RiskMeasure, index: int, life: int
    ) -> None:
        torch.set_num_threads(1)
        s = info.settings
        self.offset = index * s.envs
        self.orders: Orders | None = None

        def generator(name: str) -> np.random.Generator:
            return seeds.generator(s.seed, f"actor {index} life {life} {name}")

        self.actor = Actor(
            [make(source, s) for _ in range(s.envs)],
            build_network(s, info.observation, info.actions.count),
            risk,
            s.policy_samples,
            torch.device("cpu"),
            seeds=generator("episodes"),
            exploration=generator("exploration"),
            taus=generator("acting-taus"),
            noise=generator("acting-noise"),
            scheme=s.tau,
        )
        self.actor.start()

    def play(self, orders: Orders, weights: Mapping[str, Array]) -> list[Transition]:
        """The next chunk, environment numbers counted over all actors."""
        if self.orders is None or orders.version != self.orders.version:
            self.actor.network.load_state_dict({k: torch.tensor(v) for k, v in weights.items()})
        self.orders = orders
        self.actor.risk = orders.risk
        chunk = [self.actor.play(self.actor.choose(orders.epsilon)) for _ in range(CHUNK)]
        return [replace(one, env=one.env + self.offset) for step in chunk for one in step]

    def about(self) -> tuple[int, Orders | None, list[int]]:
        """The number of the process, its last orders, and the seeds of its episodes under way."""
        return os.getpid(), self.orders, [episode.seed for episode in self.actor.episodes]


class Elsewhere:
    """Actors on Ray. One that is lost is replaced, and its episode is cut where it was last heard of."""

    def __init__(
        self,
        info: RunInfo,
        source: EnvSource,
        risk: RiskMeasure,
        learner: Learner,
        clock: Clock,
        cut: Cut,
        warn: Callable[[str], None],
    ) -> None:
        self.ray = connect(os.environ.get("RAY_ADDRESS") or "local")
        self.info, self.source, self.risk, self.learner = info, source, risk, learner
        self.clock, self.cut, self.warn = clock, cut, warn
        s = info.settings
        self.epsilons = actor_epsilons(s)
        self.exploring = True  # until learning starts
        there = float(self.ray.cluster_resources().get("CPU", 1.0))
        share = min(1.0, max(0.01, np.floor(100 * (there - 1) / s.actors) / 100))
        # So that modules of the user's own are found where, and in the order in which, they are here.
        places = os.pathsep.join(os.path.abspath(one) for one in sys.path)
        self.remote = self.ray.remote(
            num_cpus=share, max_restarts=0, runtime_env={"env_vars": {"PYTHONPATH": places}}
        )(Player)
        self.actors: dict[int, Any] = {}
        self.lives = dict.fromkeys(range(s.actors), 0)
        self.deaths = dict.fromkeys(range(s.actors), 0)  # in a row
        self.pending: dict[Any, int] = {}  # a chunk under way, and whose it is
        self.weights: tuple[int, Any] = (-1, None)
        self.waited = 0.0
        spec = info.observation
        # What each environment's agent saw last, and whether its episode is open.
        self.seen = np.zeros((s.lanes, *spec.input_shape), spec.dtype)
        self.open = np.zeros(s.lanes, bool)

    def start(self) -> None:
        for index in range(self.info.settings.actors):
            if index not in self.actors:
                self._hire(index)

    def gather(self, epsilon: float) -> list[Transition]:
        """What the next actor to report has played; the others play on meanwhile. At times nothing."""
        self.exploring = False if self.learner.updates else self.exploring
        failures = self.ray.exceptions
        with self.clock.phase("environment"):
            ready, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=PATIENCE)
            if not ready:
                self._complain()
                return []
            self.waited = 0.0
            index = self.pending.pop(ready[0])
            try:
                chunk: list[Transition] = self.ray.get(ready[0])
            except failures.RayTaskError as error:
                raise QuantailError(f"actor {index} failed: {error.cause}") from error
            except failures.RayError as error:  # its process, its machine or what it sent is lost
                self._replace(index, error)
                return []
            self.deaths[index] = 0
            self._note(chunk)
            self._order(index)
            return chunk

    def epsilon(self, scheduled: float) -> float:
        """The mean over actors, whose own do not follow the schedule."""
        return 1.0 if self.exploring else float(self.epsilons.mean())

    def turn(self, risk: RiskMeasure) -> None:
        self.risk = risk

    def under_way(self) -> tuple[Sequence[Episode], Array]:
        """Episodes of other processes are not kept: only that they are open, and what was seen last."""
        return [Episode(0, [0] if open_ else []) for open_ in self.open], self.seen

    def restore(self, episodes: list[Episode], observations: Array) -> int:
        """Begin new episodes; those of the checkpoint end where they were last seen."""
        for lane, episode in enumerate(episodes):
            if episode.actions:
                self.cut(lane, newest_frame(self.info.observation, observations[lane]))
        self.exploring = not self.learner.updates
        self.lives = dict.fromkeys(self.lives, self.learner.updates + 1)  # other luck than before
        return 0

    def close(self) -> None:
        self.ray.shutdown()

    def _hire(self, index: int) -> None:
        self.actors[index] = self.remote.remote(
            self.info, self.source, self.risk, index, self.lives[index]
        )
        self._order(index)

    def _order(self, index: int) -> None:
        updates = self.learner.updates
        if self.weights[1] is None or updates - self.weights[0] >= FRESH:
            online = self.learner.online.state_dict()
            arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in online.items()}
            self.weights = (updates, self.ray.put(arrays))
        epsilon = 1.0 if self.exploring else float(self.epsilons[index])
        orders = Orders(self.weights[0], epsilon, self.risk)
        self.pending[self.actors[index].play.remote(orders, self.weights[1])] = index

    def _complain(self) -> None:
        """Say once that nothing comes."""
        before, self.waited = self.waited, self.waited + PATIENCE
        if before < SILENCE <= self.waited:
            there = self.ray.cluster_resources().get("CPU", 0)
            self.warn(
                f"no actor has reported for {SILENCE:.0f} seconds: the environment hangs, or the "
                f"cluster's {there:g} CPUs have no room for {len(self.actors)} actors."
            )

    def _replace(self, index: int, error: Exception) -> None:
        self.deaths[index] += 1
        if self.deaths[index] >= DEATHS or getattr(error, "actor_init_failed", False):
            told = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            raise QuantailError(f"actor {index} cannot begin to play: {told}") from error
        self.warn(
            f"actor {index} was lost and is replaced; its episode is cut where it was last heard of."
        )
        per = self.info.settings.envs
        for lane in range(index * per, (index + 1) * per):
            if self.open[lane]:
                self.cut(lane, newest_frame(self.info.observation, self.seen[lane]))
                self.open[lane] = False
        self.lives[index] += 1
        self._hire(index)

    def _note(self, chunk: list[Transition]) -> None:
        """Remember where each environment of a chunk stands: its newest frame is enough to cut there."""
        spec = self.info.observation
        for transition in chunk:
            lane = transition.env
            newest_frame(spec, self.seen[lane])[...] = transition.next_frame
            self.open[lane] = not (transition.terminated or transition.truncated)


def actor_epsilons(settings: Settings) -> NDArray[np.float64]:
    """ε_i = ε^(1 + α i / (actors − 1)): some explore much, some hardly; 0 for noisy networks."""
    if settings.noisy:
        return np.zeros(settings.actors)
    place = np.linspace(0, 1, settings.actors) if settings.actors > 1 else np.array([0.5])
    return np.asarray(settings.actor_epsilon ** (1 + settings.actor_epsilon_power * place))

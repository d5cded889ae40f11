"""Collect transitions with remote actors on one or many machines, as in Ape-X (Horgan et al. 2018).

Each actor has its own ε and acts with slightly outdated weights. The order in which transitions arrive
depends on the machines, so runs are not reproducible bit for bit.
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from quantail import registry, seeds
from quantail.agents.actor import Actor, Episode, Transition
from quantail.cluster import connect
from quantail.collecting.clock import Clock
from quantail.collecting.collector import CHUNK, Truncate, check_episodes, restore, state_of
from quantail.config import Config
from quantail.envs import EnvSource, find_family, make
from quantail.envs.vector import LocalEnvs
from quantail.errors import QuantailError
from quantail.learning.learner import Learner
from quantail.networks import build_network
from quantail.risk import RiskMeasure
from quantail.runs.folder import RunInfo
from quantail.spaces import newest_frame, newest_frames, row_of, set_row
from quantail.stateful import State

Array = NDArray[Any]
SYNC_INTERVAL = 16  # updates after which actors get new weights
WAIT_SECONDS = 1.0  # how long one call waits for a chunk
WARN_SECONDS = 60.0  # warn if no chunk arrives for this long
MAX_FAILURES = 3  # consecutive failures of an actor, without any chunk, that end the run


@dataclass(frozen=True)
class ChunkRequest:
    """How an actor should collect its next chunk."""

    version: int  # of the weights
    epsilon: float
    risk: RiskMeasure


class RemoteActor:
    """Steps some environments with its own copy of the network, in a process of its own."""

    def __init__(
        self,
        info: RunInfo,
        source: EnvSource,
        risk: RiskMeasure,
        index: int,
        restart: int,
        parts: Sequence[tuple[str, str, Any]],
    ) -> None:
        torch.set_num_threads(1)
        s = info.config
        for kind, name, part in parts:
            registry.adopt(kind, name, part)
        self.offset = index * s.run.num_envs
        self.request: ChunkRequest | None = None

        def generator(name: str) -> np.random.Generator:
            return seeds.generator(s.run.seed, f"actor {index} life {restart} {name}")

        self.actor = Actor(
            LocalEnvs([make(source, s.environment) for _ in range(s.run.num_envs)]),
            build_network(s.network, s.head, info.observation, info.actions.count),
            risk,
            torch.device("cpu"),
            seeds=generator("episodes"),
            exploration=generator("exploration"),
            taus=generator("acting-taus"),
            noise=generator("acting-noise"),
            strategy=s.exploration.strategy.build(),
            masked=info.actions.masked,
        )
        self.actor.start()

    def collect(self, request: ChunkRequest, weights: Mapping[str, Array]) -> list[Transition]:
        """Return the next chunk; environments are numbered over all actors."""
        if self.request is None or request.version != self.request.version:
            self.actor.network.load_state_dict({k: torch.tensor(v) for k, v in weights.items()})
        self.request = request
        self.actor.risk = request.risk
        chunk = [self.actor.play(self.actor.choose(request.epsilon)) for _ in range(CHUNK)]
        return [replace(one, env=one.env + self.offset) for step in chunk for one in step]

    def status(self) -> tuple[int, ChunkRequest | None, list[int]]:
        """Return the process id, the last request and the seeds of the episodes in progress."""
        return os.getpid(), self.request, [episode.seed for episode in self.actor.episodes]


class RayCollector:
    """Collects transitions with actors on Ray.

    A lost actor is replaced, and its episodes are truncated at the last transition that it sent.
    """

    def __init__(
        self,
        info: RunInfo,
        source: EnvSource,
        risk: RiskMeasure,
        learner: Learner,
        clock: Clock,
        truncate: Truncate,
        warn: Callable[[str], None],
    ) -> None:
        self.ray = connect(os.environ.get("RAY_ADDRESS") or "local")
        self.info, self.source, self.risk, self.learner = info, source, risk, learner
        self.clock, self.truncate, self.warn = clock, truncate, warn
        s = info.config
        family = find_family(source)
        self.parts = [(kind, one.name, one.find()) for kind, one in s.parts.items()]
        self.parts.append(("family", family.name, type(family)))
        self.epsilons = actor_epsilons(s)
        self.exploring = True  # until learning starts
        cpus = float(self.ray.cluster_resources().get("CPU", 1.0))
        share = min(1.0, max(0.01, np.floor(100 * (cpus - 1) / s.run.actors) / 100))
        # Actors search for the user's modules in the same folders, in the same order, as this process.
        search_path = os.pathsep.join(os.path.abspath(one) for one in sys.path)
        self.remote = self.ray.remote(
            num_cpus=share, max_restarts=0, runtime_env={"env_vars": {"PYTHONPATH": search_path}}
        )(RemoteActor)
        self.actors: dict[int, Any] = {}
        self.restarts = dict.fromkeys(range(s.run.actors), 0)  # part of the actors' seeds
        self.failures = dict.fromkeys(range(s.run.actors), 0)  # consecutive
        self.pending: dict[Any, int] = {}  # requested chunks, and the actors that collect them
        self.weights: tuple[int, Any] = (-1, None)  # their version and a reference to them
        self.waited = 0.0
        # The last observation and mask of each environment, and whether its episode is in progress.
        self.observations = info.observation.zeros(s.run.total_envs)
        actions = info.actions
        self.masks = np.ones((s.run.total_envs, actions.count), bool) if actions.masked else None
        self.active = np.zeros(s.run.total_envs, bool)

    def start(self) -> int:
        """Start the actors; restored episodes are truncated at their last observation."""
        for env in np.flatnonzero(self.active):
            self._truncate(int(env))
        self.active[:] = False
        for index in range(self.info.config.run.actors):
            if index not in self.actors:
                self._start_actor(index)
        return 0

    def collect(self, epsilon: float) -> list[Transition]:
        """Return the next chunk that any actor finishes, or nothing if none finishes in time."""
        self.exploring = False if self.learner.updates else self.exploring
        exceptions = self.ray.exceptions
        with self.clock.phase("environment"):
            ready, _ = self.ray.wait(list(self.pending), num_returns=1, timeout=WAIT_SECONDS)
            if not ready:
                self._warn_if_silent()
                return []
            self.waited = 0.0
            index = self.pending.pop(ready[0])
            try:
                chunk: list[Transition] = self.ray.get(ready[0])
            except exceptions.RayTaskError as error:
                raise QuantailError(f"actor {index} failed: {error.cause}") from error
            except exceptions.RayError as error:  # its process, its machine or its chunk is lost
                self._replace_actor(index, error)
                return []
            self.failures[index] = 0
            self._track(chunk)
            self._request_chunk(index)
            return chunk

    def epsilon(self, scheduled: float) -> float:
        """Return the mean over the actors, whose own ε do not follow the schedule."""
        return 1.0 if self.exploring else float(self.epsilons.mean())

    def set_risk(self, risk: RiskMeasure) -> None:
        self.risk = risk

    def state_dict(self) -> dict[str, Any]:
        return state_of(self._episodes(), self.observations, self.masks)

    def load_state_dict(self, state: State) -> None:
        """Restore what is known of the episodes, after the learner; `start` truncates them."""
        episodes = restore(state, self.observations, self.masks)
        self.active[:] = [bool(episode.actions) for episode in episodes]
        self.exploring = not self.learner.updates
        self.restarts = dict.fromkeys(self.restarts, self.learner.updates + 1)  # gives unused seeds

    def check(self) -> None:
        check_episodes(self._episodes(), self.info.config.run.total_envs, self.info.actions.count)

    def _episodes(self) -> list[Episode]:
        """Return placeholders, which have an action if the episode is in progress.

        Remote episodes are not replayed.
        """
        return [Episode(0, [0] if active else []) for active in self.active]

    def close(self) -> None:
        self.ray.shutdown()

    def _start_actor(self, index: int) -> None:
        self.actors[index] = self.remote.remote(
            self.info, self.source, self.risk, index, self.restarts[index], self.parts
        )
        self._request_chunk(index)

    def _request_chunk(self, index: int) -> None:
        updates = self.learner.updates
        if self.weights[1] is None or updates - self.weights[0] >= SYNC_INTERVAL:
            online = self.learner.online.state_dict()
            arrays = {name: tensor.detach().cpu().numpy().copy() for name, tensor in online.items()}
            self.weights = (updates, self.ray.put(arrays))
        epsilon = 1.0 if self.exploring else float(self.epsilons[index])
        request = ChunkRequest(self.weights[0], epsilon, self.risk)
        self.pending[self.actors[index].collect.remote(request, self.weights[1])] = index

    def _warn_if_silent(self) -> None:
        """Warn once if no chunk has arrived for WARN_SECONDS."""
        before, self.waited = self.waited, self.waited + WAIT_SECONDS
        if before < WARN_SECONDS <= self.waited:
            cpus = self.ray.cluster_resources().get("CPU", 0)
            self.warn(
                f"no actor has sent transitions for {WARN_SECONDS:.0f} seconds: the environment hangs, "
                f"or the cluster's {cpus:g} CPUs are too few for {len(self.actors)} actors."
            )

    def _replace_actor(self, index: int, error: Exception) -> None:
        self.failures[index] += 1
        if self.failures[index] >= MAX_FAILURES or getattr(error, "actor_init_failed", False):
            reason = (str(error).strip().splitlines() or [type(error).__name__])[-1].strip()
            raise QuantailError(f"actor {index} cannot start: {reason}") from error
        self.warn(
            f"actor {index} was lost and has been replaced; its episodes are truncated at the last "
            "transition that it sent."
        )
        per = self.info.config.run.num_envs
        for env in range(index * per, (index + 1) * per):
            if self.active[env]:
                self._truncate(env)
                self.active[env] = False
        self.restarts[index] += 1
        self._start_actor(index)

    def _truncate(self, env: int) -> None:
        frame = newest_frame(self.info.observation, row_of(self.observations, env))
        self.truncate(env, frame, None if self.masks is None else self.masks[env])

    def _track(self, chunk: list[Transition]) -> None:
        """Keep the newest frame of each environment, so that its episode can be truncated there."""
        spec = self.info.observation
        for transition in chunk:
            env = transition.env
            set_row(newest_frames(spec, self.observations), env, transition.next_frame)
            if self.masks is not None:
                self.masks[env] = True if transition.next_mask is None else transition.next_mask
            self.active[env] = not (transition.terminated or transition.truncated)


def actor_epsilons(config: Config) -> NDArray[np.float64]:
    """Return the ε of each actor, ε_i = ε^(1 + α i / (actors − 1)), or 0 for noisy networks."""
    if config.network.noisy:
        return np.zeros(config.run.actors)
    fraction = np.linspace(0, 1, config.run.actors) if config.run.actors > 1 else np.array([0.5])
    return np.asarray(
        config.exploration.actor_epsilon ** (1 + config.exploration.actor_epsilon_power * fraction)
    )

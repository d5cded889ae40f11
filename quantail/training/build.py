"""Build all parts of a run and connect them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from quantail.agents.actor import Actor
from quantail.agents.agent import Agent
from quantail.collecting.clock import Clock
from quantail.collecting.collector import Collector, LocalCollector
from quantail.envs import EnvSource, make
from quantail.envs.vector import LocalEnvs, VectorEnv
from quantail.envs.workers import WorkerEnvs
from quantail.learning.learner import Learner, build_learner
from quantail.networks import build_network
from quantail.replay import Replay, ReplayJournal, ReplayStore
from quantail.risk.config import RiskMeasures
from quantail.runs.folder import RunFolder, RunInfo
from quantail.seeds import Generators, derived_seed
from quantail.stateful import Stateful
from quantail.training.callbacks import Callback, Callbacks
from quantail.training.components import Components, Weights
from quantail.training.counters import Counters, Due
from quantail.training.evaluator import Evaluator
from quantail.training.loggers import open_loggers
from quantail.training.memory_watch import MemoryWatch
from quantail.training.metrics import Metrics
from quantail.training.monitor import Monitor
from quantail.training.progress import Progress
from quantail.training.recorder import Recorder
from quantail.training.saver import Saver
from quantail.training.schedules import Schedules
from quantail.training.scores import Scores
from quantail.training.signals import StopSignals
from quantail.training.support import SupportWatch


@dataclass(frozen=True)
class Parts:
    """The parts of a run, which `build_parts` connects and the `Trainer` runs."""

    info: RunInfo
    folder: RunFolder
    counters: Counters
    due: Due
    scores: Scores
    clock: Clock
    learner: Learner
    replay: Replay
    recorder: Recorder
    collector: Collector
    schedules: Schedules
    agent: Agent
    evaluator: Evaluator
    metrics: Metrics
    memory: MemoryWatch
    monitor: Monitor
    callbacks: Callbacks
    saver: Saver
    signals: StopSignals


def build_parts(
    folder: RunFolder,
    info: RunInfo,
    source: EnvSource,
    risks: RiskMeasures,
    device: torch.device,
    callbacks: Sequence[Callback] = (),
    description: Mapping[str, str] | None = None,
) -> Parts:
    """Build the parts of a run at its first step."""
    s = info.config

    def warn(sentence: str) -> None:
        called.warn(sentence)  # the callbacks are built below, from parts that may warn

    counters, due, scores, clock = Counters(), Due(), Scores(), Clock()
    signals, generators = StopSignals(), Generators(s.run.seed)
    network = build_network(
        s.network, s.head, info.observation, info.actions.count, derived_seed(s.run.seed, "weights")
    )
    learner = build_learner(
        s.learner,
        network,
        risks.target,
        taus=generators["learning-taus"],
        noise=generators["learning-noise"],
        device=device,
    )
    store = ReplayStore(info.observation, s.run.total_envs, s.replay.buffer_size, info.num_masked)
    sampler = s.replay.sampler.build(store, generators["replay"])
    replay = Replay(store, sampler, s.learner.batch_size, s.learner.n_step, s.learner.discount)
    journal = ReplayJournal(folder.replay, store)
    agent = Agent(network, s, info.observation, info.actions, source, risks.evaluation)
    schedules = Schedules(s, risks, s.learner.schedule.build())
    collector = _build_collector(info, source, risks, learner, generators, clock, store, warn)
    metrics = Metrics(info.frames_per_step, counters, clock, learner, store)
    support = SupportWatch(*limits) if (limits := network.head.support()) else None
    monitor = Monitor(info, folder, counters, due, scores, clock, learner, schedules, collector, signals)
    progress = Progress(folder.path, description or {}, agent, counters, monitor.status, monitor.summary)
    called = Callbacks(open_loggers(s, folder), callbacks, progress)
    components: dict[str, Stateful] = {
        "counters": counters,
        "due": due,
        "scores": scores,
        "clock": clock,
        "metrics": metrics,
        "generators": generators,
        "agent": Weights(network),
        "learner": learner,
        "replay": journal,
        "sampler": sampler,  # after the store, which its state must fit
        "collector": collector,  # after the learner
        **({"support": support} if support else {}),
        **called.components(),
    }
    return Parts(
        info=info,
        folder=folder,
        counters=counters,
        due=due,
        scores=scores,
        clock=clock,
        learner=learner,
        replay=replay,
        recorder=Recorder(info, store, counters, support, warn),
        collector=collector,
        schedules=schedules,
        agent=agent,
        evaluator=Evaluator(info, source, agent),
        metrics=metrics,
        memory=MemoryWatch(store),
        monitor=monitor,
        callbacks=called,
        saver=Saver(
            folder,
            Components(components, warn),
            journal,
            scores,
            warn,
            keep_all=s.run.keep_checkpoints == "all",
        ),
        signals=signals,
    )


def _build_collector(
    info: RunInfo,
    source: EnvSource,
    risks: RiskMeasures,
    learner: Learner,
    generators: Generators,
    clock: Clock,
    store: ReplayStore,
    warn: Callable[[str], None],
) -> Collector:
    s, risk = info.config, risks.behaviour
    if s.run.engine == "ray":
        from quantail.collecting.ray_collector import RayCollector

        return RayCollector(info, source, risk, learner, clock, store.truncate, warn)
    envs: VectorEnv
    if s.run.workers:
        specs, timeout = (info.observation, info.actions), s.run.worker_timeout
        envs = WorkerEnvs(source, s.environment, specs, s.run.num_envs, s.run.workers, timeout, warn)
    else:
        envs = LocalEnvs([make(source, s.environment) for _ in range(s.run.num_envs)])
    actor = Actor(
        envs,
        learner.online,
        risk,
        learner.device,
        seeds=generators["episodes"],
        exploration=generators["exploration"],
        taus=generators["acting-taus"],
        noise=generators["acting-noise"],
        strategy=s.exploration.strategy.build(),
        masked=info.actions.masked,
    )
    return LocalCollector(actor, clock, store.truncate)

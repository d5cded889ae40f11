"""The runs that the page may show: only those given when the server was started."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from quantail.agents.agent import Agent
from quantail.envs import find_family
from quantail.errors import QuantailError
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.training.train import load
from quantail.trust import Trust, trusted_modules

MAX_AGENTS = 16  # that stay in memory


class RunRegistry:
    """The runs by number, their checkpoints, and the agents that were used last."""

    def __init__(self, runs: Sequence[str | Path], trust: Trust = ()) -> None:
        if not runs:
            raise QuantailError("watch takes the folder of at least one run.")
        self.folders = [RunFolder(run) for run in runs]
        self.infos = [folder.read() for folder in self.folders]
        envs = list(dict.fromkeys(info.env for info in self.infos))
        if len(envs) > 1:
            raise QuantailError(f"watch takes runs of one environment, not of {' and '.join(envs)}.")
        self.trust = trusted_modules(trust)
        self._agents: dict[tuple[int, str], Agent] = {}
        for number in range(len(runs)):
            # Fail before a page opens if a run cannot be loaded or its environment is unknown.
            find_family(self.agent(number, None).env)

    def checkpoints(self, number: int) -> list[dict[str, str]]:
        """Return the current checkpoints, newest first; a run in progress adds more."""
        found = Checkpoints(self.folders[number].checkpoints)
        best, last = found.best_steps(), int(found.name_of("last"))
        rows = []
        for name in reversed(found.names()):
            steps = int(name)
            marks = [word for word, at in (("best", best), ("last", last)) if at == steps]
            note = f" ({', '.join(marks)})" if marks else ""
            rows.append({"name": str(steps), "label": f"{steps:,} steps{note}"})
        return rows

    def describe(self) -> list[dict[str, object]]:
        """Return the runs as the page shows them."""
        return [
            {
                "name": folder.path.name,
                "agent": info.config.run.agent,
                "mean_only": info.config.head.find().mean_only,
                "checkpoints": self.checkpoints(number),
            }
            for number, (folder, info) in enumerate(zip(self.folders, self.infos, strict=True))
        ]

    def agent(self, number: int, checkpoint: object) -> Agent:
        """Return the agent of a run; the default checkpoint is the best one, or else the last."""
        if checkpoint is None:
            agent = load(self.folders[number].path, trust=self.trust)
            return self._remember(number, agent)
        if checkpoint not in [row["name"] for row in self.checkpoints(number)]:
            raise QuantailError("this checkpoint no longer exists: choose another one.")
        if (number, str(checkpoint)) in self._agents:
            return self._remember(number, self._agents[number, str(checkpoint)])
        agent = load(self.folders[number].path, str(checkpoint), trust=self.trust)
        return self._remember(number, agent)

    def _remember(self, number: int, agent: Agent) -> Agent:
        """Note that an agent was used; if there are many, forget the one used longest ago."""
        key = (number, str(agent.checkpoint))
        self._agents.pop(key, None)
        self._agents[key] = agent
        if len(self._agents) > MAX_AGENTS:
            del self._agents[next(iter(self._agents))]
        return agent


@dataclass(frozen=True)
class Offer:
    """Runs that a tab can show, and how it begins."""

    runs: Sequence[str | Path]
    trust: Trust = ()
    title: str = ""
    note: str = ""  # what there is to see
    risks: Sequence[str] = ()  # of the panes at first; if empty, one pane with the run's own
    speed: int | None = None  # decisions per second; by default what suits the environment

    @cached_property
    def registry(self) -> RunRegistry:
        """The runs, which are loaded when they are first needed."""
        return RunRegistry(self.runs, self.trust)

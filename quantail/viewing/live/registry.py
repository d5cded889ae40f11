"""The runs that the page may show: only those given when the server was started."""

from collections.abc import Sequence
from pathlib import Path

from quantail.agents.agent import Agent
from quantail.envs import find_family
from quantail.errors import QuantailError
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.folder import RunFolder
from quantail.training.train import load
from quantail.trust import Trust, trusted_modules


class RunRegistry:
    """The runs by number, their checkpoints, and their agents, each loaded once."""

    def __init__(self, runs: Sequence[str | Path], trust: Trust = ()) -> None:
        if not runs:
            raise QuantailError("watch needs the folder of at least one run.")
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
            rows.append({"name": str(steps), "label": " ".join([f"{steps:,} steps", *marks])})
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
            self._agents[number, str(agent.checkpoint)] = agent
            return agent
        if checkpoint not in [row["name"] for row in self.checkpoints(number)]:
            raise QuantailError("this checkpoint no longer exists: choose another one.")
        key = (number, str(checkpoint))
        if key not in self._agents:
            self._agents[key] = load(self.folders[number].path, str(checkpoint), trust=self.trust)
        return self._agents[key]

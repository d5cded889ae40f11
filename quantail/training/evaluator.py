"""Evaluate the agent of a run from time to time while it learns."""

from collections.abc import Callable

from quantail import seeds
from quantail.agents.agent import Agent
from quantail.envs import EnvSource, make
from quantail.envs.adapt import Adapter
from quantail.evaluation.evaluate import PARALLEL_EPISODES, Evaluation, EvaluationStopped, play_episodes
from quantail.runs.folder import RunInfo
from quantail.training.closing import call_all


class Evaluator:
    """Plays evaluation episodes in environments of its own, by the protocol of the run."""

    def __init__(self, info: RunInfo, source: EnvSource, agent: Agent) -> None:
        self.info, self.source, self.agent = info, source, agent
        self._envs: list[Adapter] = []  # made when they are first needed

    def evaluate(self, steps: int, stop: Callable[[], bool]) -> Evaluation | None:
        """Evaluate the agent, or the random policy at step 0; return None if `stop` asks to stop.

        The seed depends on the step alone, so a resumed run repeats the evaluation.
        """
        s, protocol = self.info.config, self.info.protocol
        if not self._envs:
            episodes = (
                PARALLEL_EPISODES if s.evaluation.evaluation_steps else s.evaluation.evaluation_episodes
            )
            self._envs = [
                make(self.source, s.environment) for _ in range(min(PARALLEL_EPISODES, episodes))
            ]
        seed = seeds.derived_seed(s.run.seed, f"evaluation {steps}")
        if not steps:
            protocol = protocol.changed(epsilon=1.0)
        try:
            return play_episodes(self.agent, self._envs, protocol, seed=seed, stop=stop)
        except EvaluationStopped:
            return None

    def close(self) -> None:
        call_all(env.close for env in self._envs)

"""Store the transitions of a run and keep count of its episodes."""

from collections.abc import Callable

from quantail.agents.actor import Episode, Transition
from quantail.envs.training_reward import training_reward
from quantail.replay import ReplayStore
from quantail.runs.folder import RunInfo
from quantail.training.counters import Counters
from quantail.training.progress import FinishedEpisode
from quantail.training.support import SupportWatch


class Recorder:
    """Puts transitions into the replay buffer and notes which episodes have ended."""

    def __init__(
        self,
        info: RunInfo,
        store: ReplayStore,
        counters: Counters,
        support: SupportWatch | None,  # if the head has a fixed range
        warn: Callable[[str], None],
    ) -> None:
        self.info, self.config = info, info.config
        self.store, self.counters = store, counters
        self.support, self._warn = support, warn
        self._ended: list[FinishedEpisode] = []

    def add(self, transition: Transition) -> None:
        """Count and store a transition."""
        self.counters.steps += 1
        self.store.add(
            transition.env,
            transition.frame,
            transition.action,
            training_reward(self.config.environment, transition.reward),
            first=transition.first,
            terminal=transition.ends_return,
            mask=transition.mask,
        )
        if transition.truncated:
            self.store.truncate(transition.env, transition.next_frame, transition.next_mask)
        if transition.finished:
            self._end(transition, transition.finished)

    def take_ended(self) -> list[FinishedEpisode]:
        """Return the episodes that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def _end(self, transition: Transition, episode: Episode) -> None:
        steps = self.counters.steps
        self.counters.add_episode(episode)
        self._ended.append(
            FinishedEpisode(
                steps=steps,
                frames=steps * self.info.frames_per_step,
                env=transition.env,
                seed=episode.seed,
                actions=episode.actions,
                score=episode.score,
                terminated=transition.terminated,
            )
        )
        if self.support:
            returns = self.store.newest_returns(transition.env, self.config.learner.discount)
            if warning := self.support.warning(returns):
                self._warn(warning)

"""A callback that adds a column to metrics.csv."""

from quantail import Callback
from quantail.training.callbacks import Progress


class LongestEpisode(Callback):
    """Records the length of the longest episode so far as `longest_episode`."""

    def __init__(self) -> None:
        self.longest = 0

    def on_episode_end(self, progress: Progress) -> None:
        if progress.episode is not None:
            self.longest = max(self.longest, len(progress.episode.actions))
            progress.record("longest_episode", self.longest)

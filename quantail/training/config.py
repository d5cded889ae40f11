"""The settings of a run as a whole: its length, seed, machine and files."""

from dataclasses import dataclass

from quantail.errors import QuantailError
from quantail.parts import Group
from quantail.settings import OURS, PAPER, setting


@dataclass(frozen=True)
class RunConfig(Group):
    """The agent's name, the budget, where transitions are collected, and what is written."""

    agent: str = setting("iqn", "agent to train (see `quantail agents`)", source=OURS)
    preset: str = setting("", "preset that the configuration is made from", source=OURS)
    steps: int = setting(
        50_000_000,
        "total number of environment steps, over all environments",
        unit="steps",
        source=PAPER,
        least=1,
    )
    seed: int = setting(
        0, "random seed, from which all random generators are derived", source=OURS, least=0
    )
    num_envs: int = setting(
        1, "number of parallel environments, which share one forward pass", source=OURS, least=1
    )
    workers: int = setting(
        0,
        "number of processes that step the environments, at least one environment each; 0 steps them in "
        "the training process",
        source=OURS,
        least=0,
        only=("engine", "local"),
    )
    worker_timeout: int = setting(
        300,
        "a worker that does not answer for so long is replaced, and its episodes are truncated",
        unit="seconds",
        source=OURS,
        least=1,
        only=("engine", "local"),
    )
    engine: str = setting(
        "local",
        "where transitions are collected: in this process, or by actors on Ray with slightly outdated "
        "weights (not reproducible bit for bit)",
        source=OURS,
        choices=("local", "ray"),
    )
    actors: int = setting(
        4,
        "number of actor processes, each with `num_envs` environments",
        source=OURS,
        least=1,
        only=("engine", "ray"),
    )
    device: str = setting(
        "auto",
        "torch device of the networks; auto uses cuda or mps if available",
        source=OURS,
        choices=("auto", "cpu", "cuda", "mps"),
    )
    threads: int = setting(
        0,
        "number of CPU threads of torch while the run runs, from 1 to 1024; 0 keeps the number that "
        "torch has; results repeat bit for bit only with the same number",
        source=OURS,
        least=0,
        most=1024,  # torch crashes if the system cannot start as many
    )
    log_every: int = setting(
        10_000, "number of steps between two rows of metrics.csv", unit="steps", source=OURS, least=1
    )
    checkpoint_every: int = setting(
        50_000, "number of steps between two checkpoints", unit="steps", source=OURS, least=1
    )
    keep_checkpoints: str = setting(
        "recent",
        "which checkpoints stay on disk: the last two and the best, or all of them, the older ones with "
        "the weights alone",
        source=OURS,
        choices=("recent", "all"),
    )
    tensorboard: bool = setting(False, "also write TensorBoard event files", source=OURS)
    wandb: str = setting("", "also log to this Weights & Biases project; disabled if empty", source=OURS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.workers > self.num_envs:
            raise QuantailError(
                f"workers is {self.workers}, and num_envs is {self.num_envs}: raise num_envs, so that "
                "each worker has an environment."
            )

    @property
    def total_envs(self) -> int:
        """The number of environments over all actors."""
        return self.num_envs * (self.actors if self.engine == "ray" else 1)

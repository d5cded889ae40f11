"""The settings of learning: targets, optimizer, and when updates are made."""

from dataclasses import dataclass

from quantail.parts import Group, Part, part
from quantail.settings import NATURE, PAPER, QR, setting


@dataclass(frozen=True)
class LearnerConfig(Group):
    """The update and its parts, and the schedule of updates."""

    update: Part = part(
        "learner",
        "standard",
        "the update: target, loss and one step of the optimizer, as in Algorithm 1 of the paper",
        source=PAPER,
    )
    target: Part = part(
        "target",
        "bellman",
        "target of the return distribution; munchausen adds the clipped log-policy to the reward and "
        "uses a soft value of the next state",
        source=PAPER,
    )
    optimizer: Part = part(
        "optimizer", "adam", "Adam, or the centered RMSProp of DQN with decay 0.95", source=QR
    )
    schedule: Part = part(
        "schedule",
        "constant",
        "how the learning rate changes over the run: constant, linear or cosine decay",
        source=PAPER,
    )
    learning_rate: float = setting(5e-5, "learning rate of the optimizer", source=QR, least=0)
    discount: float = setting(0.99, "discount factor per step (gamma)", source=NATURE, least=0, most=1)
    n_step: int = setting(
        1,
        "n of the n-step return: number of rewards before bootstrapping",
        unit="steps",
        source=PAPER,
        least=1,
    )
    batch_size: int = setting(32, "number of transitions per update", source=NATURE, least=1)
    gradient_clip: float = setting(
        0.0, "maximum norm of the gradient; 0 disables clipping", source=PAPER, least=0
    )
    train_frequency: int = setting(
        4, "number of steps between two updates", unit="steps", source=NATURE, least=1
    )
    target_update_interval: int = setting(
        10_000,
        "number of steps between two updates of the target network",
        unit="steps",
        source=NATURE,
        least=1,
    )
    learning_starts: int = setting(
        50_000,
        "number of steps to collect before the first update",
        unit="steps",
        source=NATURE,
        least=1,
    )
    precision: str = setting(
        "float32",
        "precision of matrix products in an update; tf32 and bfloat16 need a GPU that supports them "
        "(slow on most CPUs); targets and losses stay float32",
        source="ours",
        choices=("float32", "tf32", "bfloat16"),
    )
    compile: bool = setting(
        False,
        "compile the update with torch.compile; slower for Atari on a CPU",
        source="ours",
    )

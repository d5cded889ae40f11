"""Trained agents that come with Quantail, and how `quantail demo` shows them.

`make demo-agents` trains them again (`tools/demo_agents.py`).
"""

from dataclasses import dataclass
from pathlib import Path

from quantail.viewing.live.registry import Offer

AGENTS = Path(__file__).parent / "agents"


@dataclass(frozen=True)
class Demo:
    """A shipped agent, and how a page shows it at first."""

    title: str
    note: str  # what there is to see
    risks: tuple[str, ...]  # the risk measure of each pane
    speed: int  # decisions per second
    extra: str = ""  # the extra of Quantail that its environment needs


DEMOS = {
    "cliff": Demo(
        "Windy cliff",
        "Both walkers use the same network, an IQN agent that was trained for the highest mean return, "
        "and the same seed. The neutral walker takes the action with the highest mean (○) and walks "
        "along the edge, where one step in twenty ends in a fall. The other one takes the action with "
        "the highest CVaR(0.1) (◆), the mean of the worst 10 % of returns, and walks one row above the "
        "edge. Nothing was trained again: the risk measure only ranks the next action differently. Step "
        "through the checkpoints to see how the distributions formed.",
        ("neutral", "cvar:0.1"),
        2,
    ),
    "breakout": Demo(
        "MinAtar Breakout",
        "An IQN agent, trained for 300,000 steps, moves the paddle at the bottom; the ball is green, "
        "and pink is where it was. Each curve is the predicted distribution of the discounted return "
        "after one action, from the worst outcomes (τ = 0) to the best (τ = 1). Choose another risk "
        "measure and move its slider: it ranks the next action differently, and nothing is trained "
        "again.",
        ("neutral",),
        8,
        extra="minatar",
    ),
}


def folder(name: str) -> Path:
    """Return the folder of a shipped agent, which `quantail.load` and `quantail watch` take."""
    return AGENTS / name


def offers() -> list[Offer]:
    """Return what the page of `quantail demo` offers, in the order of DEMOS."""
    return [
        Offer([folder(name)], title=one.title, note=one.note, risks=one.risks, speed=one.speed)
        for name, one in DEMOS.items()
    ]

"""An attitude to risk that adapts as an episode goes: careful while a floor is in danger, else neutral.

    quantail train Quantail/Chain-v0 --agent qr-dqn --out runs/chain
    python examples/adaptive_risk.py runs/chain --floor 1

A measure at each step looks only ahead. This looks back too: what has been earned already counts, so
that an agent that is well above its floor can afford a risk, and one that is near it cannot.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import quantail

LEVEL = 0.05  # the share of bad luck that the floor has to stand


def neutral_unless_in_danger(agent: quantail.Agent, floor: float) -> Callable[[Any, float, float], int]:
    """The policy: an action for an observation, given the return so far and the discount so far."""

    def choose(observation: Any, earned: float, weight: float) -> int:
        bold = int(agent.act(observation, "neutral"))
        bad_luck = agent.returns(observation).quantile(LEVEL)[bold - agent.actions.start]
        safe = earned + weight * bad_luck >= floor
        return bold if safe else int(agent.act(observation, f"cvar:{LEVEL}"))

    return choose


def play(agent: quantail.Agent, choose: Callable[[Any, float, float], int], episodes: int) -> np.ndarray:
    """The discounted return of every episode."""
    env = quantail.make(agent.env, agent.settings)
    returns = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        earned, weight, over = 0.0, 1.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(choose(observation, earned, weight))
            earned, weight = earned + weight * reward, weight * agent.settings.discount
            over = terminated or truncated
        returns.append(earned)
    env.close()
    return np.array(returns)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", help="folder of a run")
    parser.add_argument("--floor", type=float, default=1.0, help="return that should not be missed [1]")
    parser.add_argument("--episodes", type=int, default=1000, help="for each attitude [1000]")
    arguments = parser.parse_args(words)
    agent = quantail.load(arguments.run, "last")
    attitudes = {
        "neutral": lambda observation, *_: int(agent.act(observation, "neutral")),
        f"cvar:{LEVEL}": lambda observation, *_: int(agent.act(observation, f"cvar:{LEVEL}")),
        "adaptive": neutral_unless_in_danger(agent, arguments.floor),
    }
    print(f"{'attitude':12}{'mean':>8}{'worst tenth':>14}{f'below {arguments.floor:g}':>12}")
    for name, choose in attitudes.items():
        returns = play(agent, choose, arguments.episodes)
        below = (returns < arguments.floor).mean()
        worst = np.sort(returns)[: max(1, len(returns) // 10)].mean()
        print(f"{name:12}{returns.mean():>8.2f}{worst:>14.2f}{below:>12.1%}")


if __name__ == "__main__":
    main()

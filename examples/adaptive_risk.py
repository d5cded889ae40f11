"""Change the risk measure during an episode: cautious while a target return is in danger, else neutral.

    quantail train Quantail/Chain-v0 --agent qr-dqn --out runs/chain
    python examples/adaptive_risk.py runs/chain --floor 1

A risk measure only looks at future returns. This policy also counts the rewards collected so far: an
agent that is well above its floor can afford to take risks, and one that is close to it cannot.
"""

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import quantail
from quantail.distributions import ReturnDistribution

LEVEL = 0.05  # quantile fraction of the return that must stay above the floor, and level of CVaR


def neutral_unless_in_danger(agent: quantail.Agent, floor: float) -> Callable[[Any, float, float], int]:
    """Return a policy that maps observation, return so far and discount so far to an action."""

    def choose(observation: Any, earned: float, discount: float) -> int:
        neutral = int(agent.act(observation, "neutral"))
        low_return = agent.returns(observation).quantile(LEVEL)[neutral - agent.actions.start]
        safe = earned + discount * low_return >= floor
        return neutral if safe else int(agent.act(observation, f"cvar:{LEVEL}"))

    return choose


def play(agent: quantail.Agent, choose: Callable[[Any, float, float], int], episodes: int) -> np.ndarray:
    """Play episodes and return their discounted returns."""
    env = quantail.make(agent.env, agent.config)
    returns = []
    for seed in range(episodes):
        observation, _ = env.reset(seed=seed)
        earned, discount, over = 0.0, 1.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(
                choose(observation, earned, discount)
            )
            earned, discount = earned + discount * reward, discount * agent.config.learner.discount
            over = terminated or truncated
        returns.append(earned)
    env.close()
    return np.array(returns)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", help="folder of a run")
    parser.add_argument(
        "--floor", type=float, default=1.0, help="return that every episode should reach [1]"
    )
    parser.add_argument("--episodes", type=int, default=1000, help="episodes for each policy [1000]")
    arguments = parser.parse_args(words)
    agent = quantail.load(arguments.run, "last")
    policies = {
        "neutral": lambda observation, *_: int(agent.act(observation, "neutral")),
        f"cvar:{LEVEL}": lambda observation, *_: int(agent.act(observation, f"cvar:{LEVEL}")),
        "adaptive": neutral_unless_in_danger(agent, arguments.floor),
    }
    print(f"{'policy':12}{'mean':>8}{'worst tenth':>14}{f'below {arguments.floor:g}':>12}")
    for name, choose in policies.items():
        returns = play(agent, choose, arguments.episodes)
        below = (returns < arguments.floor).mean()
        worst = float(quantail.CVaR(0.1).value(ReturnDistribution.of(returns)))
        print(f"{name:12}{returns.mean():>8.2f}{worst:>14.2f}{below:>12.1%}")


if __name__ == "__main__":
    main()

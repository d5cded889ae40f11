"""Every agent learns the known return distributions of a small environment."""

import numpy as np
import pytest

import quantail as q
from quantail.networks.heads import HEADS
from quantail.recipes import AGENTS
from tests.helpers.lottery import (
    DISCOUNT,
    Lottery,
    exact_distributions,
    mean,
    observation,
    quantile_function,
)

# Settings for an accurate distribution: 1-step targets, the plain quantile loss, and random actions.
SETTINGS = {
    "steps": 16_000,
    "num_envs": 8,
    "epsilon_start": 1.0,
    "epsilon_end": 1.0,
    "n_step": 1,
    "discount": DISCOUNT,
    "batch_size": 128,
    "train_frequency": 16,
    "target_update_interval": 300,
    "learning_starts": 1_000,
    "learning_rate": 2e-3,
    "buffer_size": 16_000,
    "evaluation_every": 16_000,
    "evaluation_episodes": 1,
    "checkpoint_every": 16_000,
    "mlp_sizes": [64],
    "head_size": 64,
    "threads": 1,
}
OWN = {
    "expected": {"kappa": 100.0},  # otherwise large errors are clipped and the mean is biased
    "categorical": {"atoms": 61, "value_min": -12.0, "value_max": 18.0},
    "quantiles": {"kappa": 0.0},
    "implicit": {"kappa": 0.0, "online_samples": 16, "target_samples": 16, "policy_samples": 32},
    "fractions": {"kappa": 0.0, "quantiles": 24},
    "hl-gauss": {"atoms": 61, "value_min": -12.0, "value_max": 18.0},
}
EXACT, BEST = exact_distributions()
TAUS = (np.arange(400) + 0.5) / 400


def distance(learned, distribution):
    """Return the 1-Wasserstein distance, the area between two quantile functions."""
    return float(np.abs(np.sort(learned) - quantile_function(distribution, TAUS)).mean())


def test_the_exact_distributions_are_those_of_played_episodes():
    env, returns = Lottery(), {key: [] for key in EXACT}
    rng = np.random.default_rng(0)
    for episode in range(6000):
        env.reset(seed=episode)
        first = env.state, int(rng.integers(2))
        total, discount, action = 0.0, 1.0, first[1]
        for stage in range(3):
            _, reward, _, _, _ = env.step(action)
            total, discount = total + discount * reward, discount * DISCOUNT
            action = BEST.get((stage + 1, env.state))
        returns[0, *first].append(total)
    for state in range(2):
        for action in range(2):
            played = np.quantile(returns[0, state, action], TAUS)
            assert distance(played, EXACT[0, state, action]) < 0.35


@pytest.mark.parametrize("agent", AGENTS)
def test_the_greedy_policy_is_optimal_and_the_learned_distribution_is_close(agent, tmp_path):
    recipe = AGENTS[agent]
    learned = q.train(
        Lottery, agent=agent, out=tmp_path / "run", **SETTINGS, **OWN.get(recipe.parts["head"], {})
    )
    for (stage, state), action in BEST.items():
        assert learned.act(observation(stage, state)) == action, (stage, state)
    if recipe.parts.get("target") == "munchausen":
        return  # it learns the distribution of the return with the log-policies added
    distances, mean_distances = [], []
    for (stage, state, action), distribution in EXACT.items():
        returns = learned.quantiles(observation(stage, state), TAUS)[:, action]
        distances.append(distance(returns, distribution))
        mean_distances.append(distance(np.full(len(TAUS), mean(distribution)), distribution))
    print(
        f"{agent}: W1 at most {max(distances):.2f}, on average {np.mean(distances):.2f}; "
        f"{np.mean(mean_distances):.2f} for the mean alone"
    )
    if HEADS[recipe.parts["head"]].mean_only:
        values = [learned.values(observation(*key[:2]))[key[2]] for key in EXACT]
        errors = np.abs(np.array(values) - [mean(distribution) for distribution in EXACT.values()])
        assert errors.max() < 0.8
    else:
        assert np.mean(distances) < 0.5  # it is 3.3 for the mean alone
        assert max(distances) < 1.0

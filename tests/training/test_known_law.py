"""Every agent on a world whose return laws are known exactly: is what it learned true?"""

import numpy as np
import pytest

import quantail as q
from quantail.recipes import AGENTS
from tests.helpers.lottery import DISCOUNT, Lottery, exact_laws, mean, observation, quantile_function

# Where the law is the question: targets of one step, the plain quantile loss, and every action tried.
SETTINGS = {
    "steps": 16_000,
    "envs": 8,
    "epsilon_start": 1.0,
    "epsilon_end": 1.0,
    "n_step": 1,
    "discount": DISCOUNT,
    "batch_size": 128,
    "update_every": 16,
    "target_every": 300,
    "learn_start": 1_000,
    "learning_rate": 2e-3,
    "replay_capacity": 16_000,
    "evaluation_every": 16_000,
    "evaluation_episodes": 1,
    "checkpoint_every": 16_000,
    "mlp_sizes": [64],
    "head_size": 64,
    "threads": 1,
}
OWN = {
    "expected": {"kappa": 100.0},  # else errors are clipped, and what is learned is not the mean
    "categorical": {"atoms": 61, "value_min": -12.0, "value_max": 18.0},
    "quantiles": {"kappa": 0.0},
    "implicit": {"kappa": 0.0, "online_samples": 16, "target_samples": 16, "policy_samples": 32},
    "fractions": {"kappa": 0.0, "quantiles": 24},
}
LAWS, BEST = exact_laws()
TAUS = (np.arange(400) + 0.5) / 400


def distance(learned, law):
    """The 1-Wasserstein distance, the area between two quantile functions."""
    return float(np.abs(np.sort(learned) - quantile_function(law, TAUS)).mean())


def test_the_worlds_exact_laws_are_those_of_played_episodes():
    env, returns = Lottery(), {key: [] for key in LAWS}
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
            assert distance(played, LAWS[0, state, action]) < 0.35


@pytest.mark.parametrize("agent", AGENTS)
def test_the_greedy_policy_is_the_best_one_and_the_learned_law_is_near_the_exact_one(agent, tmp_path):
    recipe = AGENTS[agent]
    learned = q.train(
        Lottery, agent=agent, out=tmp_path / "run", **SETTINGS, **OWN[recipe.parts["head"]]
    )
    for (stage, state), action in BEST.items():
        assert learned.act(observation(stage, state)) == action, (stage, state)
    if recipe.parts.get("munchausen"):
        return  # what it learns is the law of the return with the log-policies in it
    distances, points = [], []
    for (stage, state, action), law in LAWS.items():
        returns = learned.quantiles(observation(stage, state), TAUS)[:, action]
        distances.append(distance(returns, law))
        points.append(distance(np.full(len(TAUS), mean(law)), law))
    print(
        f"{agent}: W1 at most {max(distances):.2f}, on average {np.mean(distances):.2f}; "
        f"of the mean alone {np.mean(points):.2f}"
    )
    if recipe.parts["head"] == "expected":
        values = [learned.values(observation(*key[:2]))[key[2]] for key in LAWS]
        errors = np.abs(np.array(values) - [mean(law) for law in LAWS.values()])
        assert errors.max() < 0.8
    else:
        assert np.mean(distances) < 0.5  # of the mean alone it is 3.3
        assert max(distances) < 1.0

import numpy as np
import pytest

from quantail.envs import make, specs_of
from quantail.recipes import compose


def play(env, seed, steps=60):
    rng = np.random.default_rng(seed)
    observations, rewards = [env.reset(seed=seed)[0]], []
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(rng.integers(env.action_space.n))
        observations.append(observation)
        rewards.append(reward)
        if terminated or truncated:
            break
    return np.stack(observations), rewards


@pytest.mark.parametrize("game", ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"])
def test_an_episode_is_a_function_of_its_seed_and_its_actions(game):
    """MinAtar's sticky actions remember the last action of the previous episode; ours must not."""
    fresh = make(f"MinAtar/{game}-v1", compose("minatar", {}).environment)
    used = make(f"MinAtar/{game}-v1", compose("minatar", {}).environment)
    for seed in range(30):
        used.reset(seed=1000 + seed)
        used.step(used.action_space.n - 1)
        here, there = play(used, seed), play(fresh, seed)
        np.testing.assert_array_equal(here[0], there[0])
        assert here[1] == there[1]
        fresh = make(f"MinAtar/{game}-v1", compose("minatar", {}).environment)


def test_observations_are_those_of_minatar_and_depend_on_the_seed():
    env = make("MinAtar/Seaquest-v1", compose("minatar", {}).environment)
    spec, actions = specs_of(env)
    board = spec.tree
    assert (board.shape, board.dtype, board.layout, actions.count) == ((10, 10, 10), "bool", "hwc", 6)
    assert any(play(env, seed)[0].tobytes() != play(env, 0)[0].tobytes() for seed in range(1, 4))

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

import quantail
from quantail.envs import make
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation, evaluate, play_episodes
from quantail.evaluation.protocols import Protocol
from quantail.risk import CVaR, Neutral
from quantail.spaces import ActionSpec
from tests.helpers.agents import Endless, agent
from tests.helpers.runs import ShiftedCartPole

RANDOM = Protocol("random", epsilon=1.0, episodes=10)


def test_the_same_seed_plays_the_same_episodes_and_another_seed_plays_others():
    mine = agent()
    first = evaluate(mine, episodes=12, seed=1, epsilon=0.3)
    again = evaluate(mine, "CartPole-v1", episodes=12, seed=1, epsilon=0.3)
    other = evaluate(mine, episodes=12, seed=2, epsilon=0.3)
    assert first.returns.tolist() == again.returns.tolist()
    assert first.returns.tolist() != other.returns.tolist()


@pytest.mark.parametrize("adapters", [1, 3, 8])
def test_an_episode_does_not_depend_on_how_many_are_played_in_parallel(adapters):
    mine = agent("MinAtar/Breakout-v1", "minatar")
    envs = [make("MinAtar/Breakout-v1", mine.config.environment) for _ in range(adapters)]
    result = play_episodes(mine, envs, RANDOM, seed=3)
    alone = play_episodes(mine, envs[:1], RANDOM, seed=3)
    assert result.returns.tolist() == alone.returns.tolist()
    assert result.lengths.tolist() == alone.lengths.tolist()


@pytest.mark.parametrize("adapters", [1, 4])
def test_a_budget_of_steps_counts_the_whole_episodes_that_fit_in_order(adapters):
    mine = agent("MinAtar/Breakout-v1", "minatar")
    envs = [make("MinAtar/Breakout-v1", mine.config.environment) for _ in range(adapters)]
    many = play_episodes(mine, envs, replace(RANDOM, episodes=60), seed=3)
    result = play_episodes(mine, envs, replace(RANDOM, frames=200), seed=3)
    fit = int((np.cumsum(many.lengths) <= 200).sum())
    assert 3 < fit < 60
    assert result.lengths.tolist() == many.lengths[:fit].tolist()


def test_scores_are_raw_and_of_whole_games_although_training_clips_rewards_and_ends_at_lost_lives():
    mine = agent("ALE/Breakout-v5", "atari-paper", max_episode_steps=400)
    assert mine.config.environment.clip_rewards == 1.0
    result = evaluate(mine, episodes=2, seed=0, epsilon=1.0)
    env = make("ALE/Breakout-v5", mine.config.environment)
    for index, (score, length) in enumerate(zip(result.returns, result.lengths, strict=True)):
        rng = np.random.default_rng([0, index])
        env.reset(seed=int(rng.integers(2**31)))
        total, lives, over = 0.0, set(), False
        for _ in range(length):
            rng.random()
            _, reward, terminated, truncated, info = env.step(int(rng.integers(4)))
            total, over = total + reward, terminated or truncated
            lives.add(info["lives"])
        assert over
        assert total == score
        assert len(lives) > 3  # one life is not one game


def test_the_risk_of_an_evaluation_is_the_one_asked_for():
    assert evaluate(agent(), episodes=2, risk="cvar:0.25").risk == CVaR(0.25)
    assert evaluate(agent(), episodes=2).risk == Neutral()


def test_a_risk_measure_values_the_empirical_distribution_of_returns():
    returns = np.random.default_rng(0).permutation(np.arange(40.0))
    result = Evaluation(returns, np.ones(40, int), "X-v0", CVaR(0.1), RANDOM, 0)
    assert result.value() == pytest.approx((0 + 1 + 2 + 3) / 4)
    assert result.value("neutral") == result.mean == 19.5
    assert result.value("cvar:1") == pytest.approx(19.5)
    assert result.value("pow:-2") < 19.5 < result.value("pow:2")
    assert result.to_dict()["value"] == result.value()


def test_an_agent_for_another_environment_is_refused():
    with pytest.raises(QuantailError, match="was trained on CartPole-v1"):
        evaluate(agent(), "Acrobot-v1", episodes=1)
    with pytest.raises(QuantailError, match="agent takes an Agent"):
        evaluate("runs/one", episodes=1)
    with pytest.raises(QuantailError, match="lambda: MyEnv"):
        evaluate(agent(), gym.make("CartPole-v1"), episodes=1)
    with pytest.raises(QuantailError, match="episodes takes"):
        quantail.evaluate(agent(), episodes=0)


@pytest.mark.parametrize("epsilon", [-0.1, 5])
def test_an_epsilon_outside_zero_to_one_is_refused(epsilon):
    with pytest.raises(QuantailError, match="epsilon takes a number from 0 to 1"):
        evaluate(agent(), episodes=1, epsilon=epsilon)


def test_actions_that_do_not_start_at_zero_are_shifted_for_the_environment():
    mine = agent()
    mine.actions = ActionSpec(2, 5)
    shifted = evaluate(mine, ShiftedCartPole, episodes=4, epsilon=0.2)
    assert shifted.returns.tolist() == evaluate(agent(), episodes=4, epsilon=0.2).returns.tolist()


def test_an_episode_that_would_never_end_is_truncated():
    assert evaluate(agent(Endless), Endless, episodes=1, epsilon=1.0).lengths.tolist() == [27_000]


def test_a_result_holds_the_statistics_of_its_returns():
    content = evaluate(agent(), episodes=9, epsilon=1.0).to_dict()
    assert content["episodes"] == 9
    assert content["mean"] == pytest.approx(np.mean(content["returns"]))
    assert content["std"] == pytest.approx(np.std(content["returns"], ddof=1))
    quartiles = [content[name] for name in ("min", "q25", "median", "q75", "max")]
    assert quartiles == sorted(quartiles)


def test_the_default_is_thirty_episodes_under_the_run_s_own_protocol():
    mine = agent(evaluation_steps=10, evaluation_epsilon=1.0)
    result = evaluate(mine)
    assert len(result.returns) == 30
    assert (result.protocol.name, result.protocol.epsilon) == ("own", 1.0)


def test_an_episode_counts_if_it_fits_the_budget_exactly_and_not_if_it_exceeds_it():
    first, second = evaluate(agent(), episodes=2, epsilon=1.0).lengths.tolist()
    assert evaluate(agent(), frames=first + second, epsilon=1.0).lengths.tolist() == [first, second]
    assert evaluate(agent(), frames=first + second - 1, epsilon=1.0).lengths.tolist() == [first]
    assert evaluate(agent(), frames=1, epsilon=1.0).lengths.tolist() == [first]  # at least one


def test_a_budget_of_fewer_frames_than_one_action_is_one_action():
    mine = agent("ALE/Breakout-v5", "atari-paper", max_episode_steps=3, policy_samples=2, head_size=16)
    assert evaluate(mine, frames=1).lengths.tolist() == [3]
    result = evaluate(mine, frames=6 * 4)  # two games of three actions of four frames
    assert result.lengths.tolist() == [3, 3]


def test_the_limit_is_that_of_the_protocol_or_27000_steps():
    mine = agent(Endless, max_episode_steps=27_100)
    assert evaluate(mine, Endless, episodes=1, epsilon=1.0).lengths.tolist() == [27_100]
    text = Protocol("mine", frames=4).describe()
    assert "end as the environment ends them, after 27,000 steps at the latest" in text
    assert "as many whole episodes as fit into 4 frames, at least one" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"episodes": 2.5}, "episodes takes a whole number of at least 1, not 2.5"),
        ({"episodes": "two"}, "episodes takes a whole number"),
        ({"frames": 10.5}, "frames takes a whole number"),
        ({"episodes": 1, "frames": 1}, "episodes or frames, not both"),
        ({"epsilon": "high"}, "epsilon takes a number from 0 to 1"),
        ({"seed": -1}, "seed takes a whole number of at least 0"),
        ({"seed": None}, "seed takes a whole number"),
        ({"protocol": None}, "protocol takes own, no-op, sticky or human-starts, not None"),
        ({"protocol": "no-op"}, "is for ALE games"),
    ],
)
def test_invalid_arguments_are_refused_with_one_sentence(arguments, said):
    with pytest.raises(QuantailError, match=said):
        evaluate(agent(), **{"episodes": 1} | arguments if "frames" not in arguments else arguments)


def test_numpy_numbers_are_accepted():
    arguments = {"episodes": np.int64(2), "epsilon": np.float32(0.5), "seed": np.int32(3)}
    assert len(evaluate(agent(), **arguments).returns) == 2


def test_the_callback_reports_progress():
    seen = []
    result = evaluate(agent(), episodes=3, watch=lambda episodes, steps: seen.append((episodes, steps)))
    assert seen[-1] == (3, result.lengths.sum())
    assert sorted(seen) == seen

import gymnasium as gym
import numpy as np
import pytest
import torch

import quantail
from quantail.agents.agent import Agent
from quantail.envs.observations import observation_spec
from quantail.errors import QuantailError
from quantail.risk import CVaR, Neutral, Wang
from quantail.spaces import ActionSpec, ObservationSpec
from tests.helpers.configs import build_network, config

VECTOR = ObservationSpec.array((3,), "float32", "vector")


def agent(spec=VECTOR, actions=4, start=0, **changes):
    settings = config(head_size=16, mlp_sizes=(16,), **changes)
    network = build_network(settings, spec, actions, seed=2)
    with torch.no_grad():  # so that levels matter as they do after training
        network.head.phi[1].weight.mul_(8)
        network.head.f[2].bias.zero_()
    return Agent(network, settings, spec, ActionSpec(actions, start), "X-v0", Neutral())


OBSERVATIONS = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32) * 5


def test_the_same_observation_always_gets_the_same_answer():
    mine = agent()
    first = mine.act(OBSERVATIONS)
    assert all((mine.act(OBSERVATIONS) == first).all() for _ in range(5))
    assert mine.act(OBSERVATIONS[0]) == first[0]


def test_the_value_is_the_mean_over_midpoints_through_the_distortion():
    mine = agent(policy_samples=4)
    taus = 0.5 * np.array([0.125, 0.375, 0.625, 0.875])
    quantiles = mine.quantiles(OBSERVATIONS[0], taus)
    np.testing.assert_allclose(mine.values(OBSERVATIONS[0], CVaR(0.5)), quantiles.mean(0), rtol=1e-5)
    assert mine.act(OBSERVATIONS[0], CVaR(0.5)) == quantiles.mean(0).argmax()


def test_each_entry_of_a_batch_may_have_its_own_risk():
    mine = agent()
    risks = [CVaR(0.05), "wang:1.5", Neutral(), lambda tau: tau**3] * 12 + ["neutral", Wang(-1)]
    together = mine.act(OBSERVATIONS, risks)
    alone = [mine.act(o, r) for o, r in zip(OBSERVATIONS, risks, strict=True)]
    assert together.tolist() == alone
    assert (together != mine.act(OBSERVATIONS)).any()
    with pytest.raises(QuantailError, match="one for each of 50"):
        mine.act(OBSERVATIONS, risks[:3])
    with pytest.raises(QuantailError, match="risk takes"):
        mine.act(OBSERVATIONS, 0.1)


def test_quantiles_have_the_shape_of_what_was_asked():
    mine = agent()
    assert mine.quantiles(OBSERVATIONS[0], taus=[0.1, 0.5, 0.9]).shape == (3, 4)
    assert mine.quantiles(OBSERVATIONS, taus=[0.1, 0.5]).shape == (50, 2, 4)
    assert mine.quantiles(OBSERVATIONS[0], 0.5).shape == (1, 4)
    with pytest.raises(QuantailError, match="between 0 and 1"):
        mine.quantiles(OBSERVATIONS[0], [1.5])


def test_predict_follows_stable_baselines3():
    mine = agent(start=2)
    action, state = mine.predict(OBSERVATIONS[0], deterministic=True)
    assert (action, state) == (mine.act(OBSERVATIONS[0]), None)
    actions, _ = mine.predict(OBSERVATIONS)
    np.testing.assert_array_equal(actions, mine.act(OBSERVATIONS))
    random, _ = agent(start=2, evaluation_epsilon=1.0).predict(
        np.repeat(OBSERVATIONS, 20, 0), deterministic=False
    )
    assert set(random.tolist()) == {2, 3, 4, 5}


def test_random_actions_of_predict_come_from_a_generator_of_the_agent():
    def drawn(mine):
        return [mine.predict(OBSERVATIONS, deterministic=False)[0].tolist() for _ in range(5)]

    np.random.seed(1)
    first = drawn(agent(evaluation_epsilon=1.0))
    before = str(np.random.get_state())
    assert drawn(agent(evaluation_epsilon=1.0)) == first
    assert str(np.random.get_state()) == before
    assert drawn(agent(evaluation_epsilon=1.0, seed=1)) != first
    assert len({str(actions) for actions in first}) > 1


def test_actions_are_counted_as_the_environment_does():
    assert set(agent(start=7).act(OBSERVATIONS).tolist()) <= {7, 8, 9, 10}
    np.testing.assert_array_equal(agent(start=7).act(OBSERVATIONS), agent().act(OBSERVATIONS) + 7)


def test_a_whole_number_is_an_observation_where_the_environment_gives_numbers():
    mine = agent(observation_spec(gym.spaces.Discrete(5, start=10), 1, "numbers"))
    batch = mine.act(np.arange(10, 15))
    assert [mine.act(n) for n in range(10, 15)] == batch.tolist()
    assert mine.quantiles(12, [0.5]).shape == (1, 4)
    one_hot = np.eye(5, dtype=np.bool_)
    assert mine.act(one_hot).tolist() == batch.tolist()
    assert mine.act(one_hot[3]) == batch[3]
    stacked = agent(observation_spec(gym.spaces.Discrete(5), 2, "numbers"))
    assert isinstance(stacked.act([0, 1]), int)
    assert stacked.act([[0, 1], [2, 2]]).shape == (2,)
    assert stacked.act([0, 1]) == stacked.act(one_hot[:2])


def test_an_observation_of_the_wrong_shape_is_refused_with_the_right_one():
    with pytest.raises(QuantailError, match=r"shape \(3,\), one or a batch of them, not \(4,\)"):
        agent().act(np.zeros(4))
    stacked = agent(ObservationSpec.array((84, 84), "uint8", "hw", 4))
    with pytest.raises(QuantailError, match=r"quantail\.make gives"):
        stacked.act(np.zeros((84, 84), np.uint8))


def test_acting_leaves_no_trace_in_the_global_generators():
    torch.manual_seed(0)
    mine = agent()
    before = torch.get_rng_state()
    mine.act(OBSERVATIONS)
    assert torch.equal(before, torch.get_rng_state())


def test_the_public_names_are_there():
    for name in quantail.__all__:
        assert hasattr(quantail, name)


def test_agents_and_their_answers_are_shown_in_one_line():
    mine = agent()
    assert repr(mine) == "Agent(iqn on X-v0 after 0 steps, risk neutral)"
    one, batch = repr(mine.returns(OBSERVATIONS[0])), repr(mine.returns(OBSERVATIONS))
    assert one.count("±") == 5
    assert batch == f"Returns({len(OBSERVATIONS)} observations, 4 actions)"

import itertools

import numpy as np
import pytest
import torch

from quantail.agents.actor import Actor
from quantail.envs import make, specs_of
from quantail.envs.vector import LocalEnvs
from quantail.recipes import compose
from quantail.risk import CVaR, Neutral, parse_risk
from quantail.schedules import linear
from tests.helpers.configs import build_network


def actor(env="CartPole-v1", envs=2, risk=None, seed=0, **changes):
    settings = compose("small", changes)
    made = [make(env, settings.environment) for _ in range(envs)]
    spec, actions = specs_of(made[0])
    network = build_network(settings, spec, actions.count, seed=1)
    generators = [np.random.default_rng([seed, k]) for k in range(4)]
    mine = Actor(
        LocalEnvs(made),
        network,
        risk or Neutral(),
        torch.device("cpu"),
        *generators,
        settings.exploration.strategy.build(),
    )
    mine.start()
    return mine


def test_transitions_form_unbroken_episodes_with_their_true_last_frames():
    mine = actor(envs=3, stack=2)
    rollouts = {env: [] for env in range(3)}
    finished = []
    for _ in range(120):
        for transition in mine.play(mine.choose(epsilon=1.0)):
            rollouts[transition.env].append(transition)
            if transition.finished:
                finished.append(transition.finished)
    for rollout in rollouts.values():
        assert rollout[0].first
        for before, after in itertools.pairwise(rollout):
            over = before.terminated or before.truncated
            assert after.first == over
            assert (before.finished is not None) == over
            same = np.array_equal(before.next_frame, after.frame)
            assert same != over  # the true last frame, not the first one of the next episode
    assert len(finished) > 3
    replayed = make("CartPole-v1", compose("small", {}).environment)
    for episode in finished:
        replayed.reset(seed=episode.seed)
        over = [any(replayed.step(action)[2:4]) for action in episode.actions]
        assert over == [False] * (len(over) - 1) + [True]
        assert episode.score == len(episode.actions)


def test_epsilon_is_the_share_of_random_actions():
    mine = actor(envs=50)
    greedy_only = actor(envs=50)
    differ = 0
    for _ in range(40):
        mine.observations[:] = np.random.default_rng(1).standard_normal((50, 4))
        greedy_only.observations[:] = mine.observations
        differ += (mine.choose(0.4) != greedy_only.choose(0.0)).sum()
    # Two actions: a random one differs from the greedy one half of the time.
    assert differ / 2000 == pytest.approx(0.2, abs=0.04)


def test_acting_is_greedy_on_the_distorted_value_of_fresh_levels():
    seen = []

    def record(tau):
        seen.append(tau.clone())
        return CVaR(0.1)(tau)

    risk = parse_risk(record)
    seen.clear()  # of the check that it is a distortion
    mine = actor(envs=4, risk=risk, policy_samples=16)
    actions = mine.choose(0.0)
    taus = 0.1 * seen[0]
    assert taus.shape == (4, 16)
    with torch.no_grad():
        expected = mine.network(torch.from_numpy(mine.observations), taus).mean(1).argmax(1)
    assert actions.tolist() == expected.tolist()
    mine.choose(0.0)
    assert not torch.equal(seen[0], seen[1])


def test_an_episode_replayed_from_its_seed_stands_where_it_stood():
    mine = actor("MinAtar/Breakout-v1", envs=2)
    for _ in range(25):
        mine.play(mine.choose(1.0))
    stood, episodes = mine.observations.copy(), list(mine.episodes)
    other = actor("MinAtar/Breakout-v1", envs=2, seed=5)
    assert other.continue_episodes(episodes, stood) == []
    assert (other.observations == stood).all()
    assert other.episodes == episodes
    wrong = stood.copy()
    wrong[1] = ~wrong[1]
    assert other.continue_episodes(episodes, wrong) == [1]
    assert other.episodes[1].actions == []


def test_a_schedule_waits_then_falls_on_a_line_then_stays():
    values = [linear(step, 1.0, 0.1, 10, 100) for step in (0, 9, 10, 60, 110, 1000)]
    assert values == pytest.approx([1.0, 1.0, 1.0, 0.55, 0.1, 0.1])
    assert linear(10, 1.0, 0.1, 10, 0) == 0.1

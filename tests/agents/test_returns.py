import re

import numpy as np
import pytest

from quantail.envs import make
from quantail.errors import QuantailError
from quantail.recipes import AGENTS
from quantail.risk import CVaR
from tests.helpers.agents import agent


@pytest.fixture(params=["iqn", "qr-dqn", "c51", "fqf", "dqn", "hl-gauss"])
def mine(request):
    return agent(agent=request.param)


def seen(mine, count=3):
    env = make("CartPole-v1", mine.config.environment)
    return np.stack([env.reset(seed=seed)[0] for seed in range(count)])


def test_quantiles_and_values_are_the_agent_s_own(mine):
    batch = seen(mine)
    z = mine.returns(batch)
    assert np.array_equal(z.quantile([0.1, 0.9]), mine.quantiles(batch, [0.1, 0.9]))
    assert np.array_equal(z.value("cvar:0.25"), mine.values(batch, "cvar:0.25"))
    assert np.array_equal(z.mean(), mine.values(batch, "neutral"))


def test_a_batch_answers_as_its_observations_one_by_one(mine):
    batch = seen(mine)
    together = mine.returns(batch)
    for row, observation in enumerate(batch):
        alone = mine.returns(observation)
        for ask in (
            lambda z: z.quantile([0.2, 0.7]),
            lambda z: z.quantile(0.5),
            lambda z: z.cdf([0.0, 0.01]),
            lambda z: z.std(),
            lambda z: z.mean(),
            lambda z: z.value("wang:-0.75"),
        ):
            assert ask(alone) == pytest.approx(ask(together)[row], abs=1e-5)


def test_shapes_end_with_actions_and_a_single_level_has_no_axis(mine):
    z = mine.returns(seen(mine)[0])
    assert z.quantile([0.1, 0.5, 0.9]).shape == (3, 2)
    assert z.quantile(0.5).shape == z.cdf(0.0).shape == z.std().shape == z.mean().shape == (2,)
    assert z.cdf([0.0, 1.0, 2.0]).shape == (3, 2)
    assert z.sample(7, seed=0).shape == (7, 2)
    assert mine.returns(seen(mine)).sample(7).shape == (3, 7, 2)


def test_the_chance_of_at_most_a_quantile_is_its_level():
    mine = agent(agent="qr-dqn")
    z = mine.returns(seen(mine)[0])
    for tau in (0.1, 0.5, 0.9):
        values = z.quantile(tau)
        probabilities = np.array([z.cdf(float(value))[action] for action, value in enumerate(values)])
        assert probabilities == pytest.approx(tau, abs=1 / mine.config.head.config.quantiles + 0.01)


def test_chances_rise_from_none_to_all(mine):
    z = mine.returns(seen(mine)[0])
    grid = np.linspace(-1e3, 1e3, 2001)
    probabilities = z.cdf(grid)
    assert (np.diff(probabilities, axis=0) >= 0).all()
    assert (probabilities[0] == 0).all()
    assert (probabilities[-1] == 1).all()


def test_samples_have_the_law_s_mean_and_deviation_and_repeat_by_seed(mine):
    z = mine.returns(seen(mine)[0])
    drawn = z.sample(40_000, seed=1)
    assert np.array_equal(drawn, z.sample(40_000, seed=1))
    spread = z.std()
    atoms = np.sort(mine.quantiles(seen(mine)[0], (np.arange(512) + 0.5) / 512), axis=0)
    assert drawn.mean(axis=0) == pytest.approx(atoms.mean(axis=0), abs=float(spread.max()) / 40 + 1e-6)
    assert drawn.std(axis=0) == pytest.approx(spread, rel=0.05, abs=1e-6)


def test_every_agent_has_a_law():
    for name in AGENTS:
        mine = agent(agent=name)
        assert np.isfinite(mine.returns(seen(mine)).std()).all()


@pytest.mark.parametrize("name", ["dqn", "hl-gauss"])
def test_the_mean_alone_has_no_deviation(name):
    mine = agent(agent=name)
    assert mine.returns(seen(mine)).std() == pytest.approx(0)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda z: z.quantile([1.5]), "numbers between 0 and 1, not [1.5]"),
        (lambda z: z.quantile("a"), "numbers between 0 and 1, not 'a'"),
        (lambda z: z.quantile([]), "numbers between 0 and 1"),
        (lambda z: z.quantile(float("nan")), "numbers between 0 and 1"),
        (lambda z: z.cdf([float("nan")]), "finite numbers"),
        (lambda z: z.cdf("x"), "finite numbers, not 'x'"),
        (lambda z: z.cdf(None), "finite numbers"),
        (lambda z: z.cdf([[0.0]]), "finite numbers"),
        (lambda z: z.sample(0), "count takes a whole number of at least 1, not 0"),
        (lambda z: z.sample(2.5), "count takes a whole number of at least 1, not 2.5"),
        (lambda z: z.sample("three"), "count takes a whole number"),
        (lambda z: z.sample(True), "count takes a whole number"),
        (lambda z: z.sample(3, seed=-1), "seed takes a whole number of at least 0, not -1"),
    ],
)
def test_bad_questions_get_one_sentence(ask, said):
    mine = agent()
    z = mine.returns(seen(mine)[0])
    with pytest.raises(QuantailError, match=re.escape(said)):
        ask(z)


def test_an_observation_that_is_none_is_refused():
    mine = agent()
    with pytest.raises(QuantailError, match="observations of shape"):
        mine.returns(np.zeros(3))
    with pytest.raises(QuantailError, match="between 0 and 1"):
        mine.quantiles(seen(mine)[0], "a")
    walker = agent("Quantail/WindyCliff-v0", "worlds")
    assert np.array_equal(walker.returns(0).mean(), walker.returns([0, 15]).mean()[0])
    for number in (99, 16, -1, [0, 99]):
        with pytest.raises(QuantailError, match="whole numbers from 0 to 15, not "):
            walker.returns(number)


def test_actions_are_drawn_independently(mine):
    z = mine.returns(seen(mine)[0])
    drawn = z.sample(20_000, seed=3)
    if (z.std() > 1e-6).all():
        assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.05


def test_a_return_counts_as_at_most_itself():
    mine = agent(agent="dqn")
    z = mine.returns(seen(mine)[0])
    sure = float(z.quantile(0.5)[0])
    assert z.cdf(sure)[0] == 1
    assert z.cdf(np.nextafter(sure, -np.inf))[0] == 0


def test_the_mean_is_the_mean_whatever_the_agent_s_own_risk():
    mine = agent()
    mine.risk = CVaR(0.1)
    z = mine.returns(seen(mine)[0])
    assert np.array_equal(z.mean(), mine.values(seen(mine)[0], "neutral"))
    assert np.array_equal(z.value(), mine.values(seen(mine)[0], CVaR(0.1)))
    assert not np.array_equal(z.mean(), z.value())

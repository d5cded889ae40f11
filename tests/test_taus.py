import numpy as np
import pytest
import torch

from quantail.taus import sample_taus

SCHEMES = ("independent", "stratified", "antithetic", "shared")


@pytest.mark.parametrize("count", [1, 7, 8])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_level_of_every_scheme_is_uniform_in_the_mean(scheme, count):
    rng = np.random.default_rng(0)
    drawn = torch.cat([sample_taus(rng, 5, count, scheme) for _ in range(20_000)]).numpy()
    assert drawn.dtype == np.float32
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    # For the loss it is enough that the levels of a state are uniform together.
    for power in (1, 2, 3):
        assert (drawn**power).mean() == pytest.approx(1 / (power + 1), abs=0.01)
    shares = np.histogram(drawn, bins=10, range=(0, 1))[0] / drawn.size
    assert shares == pytest.approx(np.full(10, 0.1), abs=0.01)


def test_strata_have_one_level_each_pairs_mirror_and_shared_ones_are_one_row():
    rng = np.random.default_rng(0)
    stratified = sample_taus(rng, 50, 8, "stratified")
    assert torch.equal((stratified * 8).long().sort(dim=1).values, torch.arange(8).expand(50, 8))
    pairs = sample_taus(rng, 50, 8, "antithetic")
    torch.testing.assert_close(pairs[:, :4] + pairs[:, 4:], torch.ones(50, 4))
    odd = sample_taus(rng, 50, 7, "antithetic")
    torch.testing.assert_close(odd[:, :3] + odd[:, 4:], torch.ones(50, 3))
    shared = sample_taus(rng, 50, 8, "shared")
    assert torch.equal(shared, shared[:1].expand(50, 8))
    assert not torch.equal(shared, sample_taus(rng, 50, 8, "shared"))


def test_states_have_levels_of_their_own_and_schemes_differ_in_spread():
    rng = np.random.default_rng(0)
    spread = {}
    for scheme in SCHEMES:
        drawn = torch.stack([sample_taus(rng, 2, 16, scheme) for _ in range(4000)])
        spread[scheme] = float(drawn[:, 0].mean(dim=1).var())
        correlation = float(torch.corrcoef(drawn[:, :, 0].T)[0, 1])  # of two states
        assert correlation == pytest.approx(1.0 if scheme == "shared" else 0.0, abs=0.06)
    assert spread["independent"] == pytest.approx(1 / 12 / 16, rel=0.1)
    assert spread["stratified"] == pytest.approx(1 / 12 / 16**3, rel=0.1)
    assert spread["antithetic"] < 1e-10
    assert spread["shared"] == pytest.approx(spread["independent"], rel=0.15)

"""Quantail's own parts pass the checks that parts from outside are given."""

import pytest

from quantail.networks.heads import HEADS
from quantail.networks.torsos import TORSOS
from quantail.testing import check_head, check_torso

CONFIGS = {
    "categorical": ({}, {"atoms": 11, "value_min": -1.0, "value_max": 4.0}),
    "quantiles": ({}, {"quantiles": 5}, {"quantiles": 32, "kappa": 0.0}),
    "implicit": (
        {},
        {"online_samples": 8, "target_samples": 7, "policy_samples": 6},
        {"embedding": "mlp", "merge": "residual"},
        {"embedding_activation": "sigmoid", "merge": "concatenate", "kappa": 0.0},
    ),
}


@pytest.mark.parametrize(
    ("name", "settings"), [(name, one) for name in HEADS for one in CONFIGS.get(name, ({},))]
)
def test_our_heads_pass(name, settings):
    check_head(HEADS[name], HEADS[name].Config(**settings))


TORSO_CONFIGS = {
    "impala": ({}, {"impala_width": 2}),
    "mlp": ({}, {"mlp_sizes": (16, 8)}, {"mlp_sizes": ()}),
}


@pytest.mark.parametrize(
    ("name", "settings"), [(name, one) for name in TORSOS for one in TORSO_CONFIGS.get(name, ({},))]
)
def test_our_torsos_pass(name, settings):
    check_torso(TORSOS[name], config=TORSOS[name].Config(**settings))

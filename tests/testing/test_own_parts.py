"""Quantail's own parts pass the checks that parts from outside are given."""

import subprocess
import sys

import pytest
import torch

from quantail.learning.targets import BellmanConfig, BellmanTarget, MunchausenConfig, MunchausenTarget
from quantail.networks.heads import HEADS
from quantail.networks.torsos import TORSOS
from quantail.risk import MEASURES, Custom, CustomUtility, parse_risk
from quantail.testing import check_head, check_risk, check_target, check_torso
from tests.helpers.risks import RISKS

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
    "mlp": ({}, {"mlp_sizes": (16, 8)}, {"mlp_sizes": ()}),
}


@pytest.mark.parametrize(
    ("name", "settings"), [(name, one) for name in TORSOS for one in TORSO_CONFIGS.get(name, ({},))]
)
def test_our_torsos_pass(name, settings):
    check_torso(TORSOS[name], config=TORSOS[name].Config(**settings))


def test_every_measure_is_checked():
    assert RISKS.keys() == MEASURES.keys()


@pytest.mark.parametrize("text", [text for texts in RISKS.values() for text in texts])
def test_our_risk_measures_pass(text):
    check_risk(parse_risk(text))


def test_measures_made_from_functions_pass():
    check_risk(Custom(lambda tau: tau**2))
    check_risk(CustomUtility(torch.tanh, "utility:torch:tanh"))


@pytest.mark.parametrize(
    "target",
    [
        BellmanTarget(),
        BellmanTarget(BellmanConfig(double=True)),
        MunchausenTarget(),
        MunchausenTarget(MunchausenConfig(munchausen_alpha=0.5, munchausen_temperature=0.5)),
    ],
)
def test_our_targets_pass(target):
    check_target(target)


def test_the_checks_need_no_pytest():
    code = "import sys; sys.modules['pytest'] = None; import quantail.testing"
    subprocess.run([sys.executable, "-c", code], check=True)

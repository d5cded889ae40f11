"""An example of a package that adds parts to Quantail."""

import quantail
from quantail_example_plugin.expectiles import Expectiles
from quantail_example_plugin.mixture import GaussianMixture
from quantail_example_plugin.recipes import EXAMPLE, EXPECTILE_DQN, MIXTURE_DQN
from quantail_example_plugin.risk import Spread
from quantail_example_plugin.target import SoftmaxTarget
from quantail_example_plugin.torso import LSTMTorso


def register() -> None:
    """Give every part its name. Quantail calls this function: see pyproject.toml."""
    quantail.register_torso("lstm", LSTMTorso)
    quantail.register_head("gaussian-mixture", GaussianMixture)
    quantail.register_head("expectiles", Expectiles)
    quantail.register_target("softmax", SoftmaxTarget)
    quantail.register_risk("spread", Spread)
    quantail.register_agent("mixture-dqn", MIXTURE_DQN)
    quantail.register_agent("expectile-dqn", EXPECTILE_DQN)
    quantail.register_preset("example", EXAMPLE)

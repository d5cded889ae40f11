"""An example of a package that adds parts to Quantail."""

import quantail
from quantail_example_plugin.callback import LongestEpisode
from quantail_example_plugin.expectiles import Expectiles
from quantail_example_plugin.mixture import GaussianMixture
from quantail_example_plugin.recipes import EXAMPLE, EXPECTILE_DQN, MIXTURE_DQN, TIGHTROPE, UNSTEADY
from quantail_example_plugin.risk import Spread
from quantail_example_plugin.target import SoftmaxTarget
from quantail_example_plugin.tightrope import TightropeFamily
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
    quantail.register_preset("tightrope", TIGHTROPE)
    quantail.register_family("tightrope", TightropeFamily)
    quantail.register_protocol("unsteady", UNSTEADY)
    quantail.register_callback("longest-episode", LongestEpisode)

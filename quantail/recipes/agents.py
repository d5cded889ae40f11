"""The named agents. An agent is not a class but a combination of parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantail.config import Changes, flattened, require_settings


@dataclass(frozen=True, init=False)
class Recipe:
    """An agent: its parts, and its settings for some presets.

        recipe = quantail.Recipe(head="my_package:MyHead", torso="impala", n_step=3)
        quantail.register_agent("mine", recipe)

    Args:
        summary: One line for `quantail agents`.
        paper: Where the agent comes from.
        on: Further settings by the name of a preset. Those on `atari-paper` come from the agent's paper.
        borrowed: Settings that come from another source, with that source.
        parts: The parts and settings of the agent by name. Those of a part from outside are a table,
            such as `head={"name": "my_package:MyHead", "width": 8}`.
    """

    parts: Changes
    summary: str
    paper: str
    on: Mapping[str, Changes]
    borrowed: Mapping[str, str]  # settings from another source

    def __init__(
        self,
        *,
        summary: str = "",
        paper: str = "",
        on: Mapping[str, Changes] | None = None,
        borrowed: Mapping[str, str] | None = None,
        **parts: Any,
    ) -> None:
        for changes in (parts, *(on or {}).values()):
            require_settings(changes)
        object.__setattr__(self, "parts", flattened(parts))
        object.__setattr__(self, "summary", summary)
        object.__setattr__(self, "paper", paper)
        object.__setattr__(self, "on", {k: flattened(v) for k, v in (on or {}).items()})
        object.__setattr__(self, "borrowed", borrowed or {})


TUNED_DOUBLE = {"optimizer": "rmsprop", "learning_rate": 2.5e-4, "target_update_interval": 30_000}
ZOO = "DQN Zoo, Quan and Ostrovski 2020"
# A quarter of the learning rate and of the square root of ε.
SLOWER_DOUBLE = TUNED_DOUBLE | {"learning_rate": 2.5e-4 / 4, "rmsprop_epsilon": 0.01 / 32**2 / 16}
RAINBOW = {"dueling": True, "noisy": True, "double": True, "n_step": 3, "sampler": "prioritized"}

AGENTS: dict[str, Recipe] = {
    "dqn": Recipe(
        summary="learns the mean return, with a target network and experience replay",
        paper="Mnih et al. 2015, doi 10.1038/nature14236",
        head="expected",
        on={
            "atari-paper": {
                "optimizer": "rmsprop",
                "learning_rate": 2.5e-4,
                "epsilon_end": 0.1,
                "evaluation_epsilon": 0.05,
            },
            "minatar": {"learning_rate": 3e-4},  # the best of three: see results/README.md
        },
    ),
    "double-dqn": Recipe(
        summary="DQN in which the online network selects the action of the target",
        paper="van Hasselt, Guez and Silver 2016, arXiv 1509.06461",
        head="expected",
        double=True,
        on={"atari-paper": TUNED_DOUBLE},
    ),
    "dueling-dqn": Recipe(
        summary="Double DQN with separate streams for the state value and the advantages",
        paper="Wang et al. 2016, arXiv 1511.06581",
        head="expected",
        double=True,
        dueling=True,
        on={"atari-paper": SLOWER_DOUBLE | {"gradient_clip": 10.0}},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "prioritized-dqn": Recipe(
        summary="Double DQN that replays transitions with large errors more often",
        paper="Schaul et al. 2016, arXiv 1511.05952",
        head="expected",
        double=True,
        sampler="prioritized",
        on={"atari-paper": SLOWER_DOUBLE},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "prioritized-dueling-dqn": Recipe(
        summary="Dueling DQN with prioritized replay",
        paper="Wang et al. 2016, arXiv 1511.06581",
        head="expected",
        double=True,
        dueling=True,
        sampler="prioritized",
        on={"atari-paper": SLOWER_DOUBLE | {"gradient_clip": 10.0}},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "c51": Recipe(
        summary="learns the probabilities of fixed returns, 51 in the paper",
        paper="Bellemare, Dabney and Munos 2017, arXiv 1707.06887",
        head="categorical",
        on={"atari-paper": {"learning_rate": 2.5e-4}},
    ),
    "qr-dqn": Recipe(
        summary="learns the quantiles of the return at fixed fractions τ",
        paper="Dabney, Rowland, Bellemare and Munos 2017, arXiv 1710.10044",
        head="quantiles",
    ),
    "rainbow": Recipe(
        summary="C51 with double, dueling, noisy, 3-step and prioritized parts",
        paper="Hessel et al. 2018, arXiv 1710.02298",
        head="categorical",
        priority_exponent=0.5,
        **RAINBOW,
        on={
            "atari-paper": {
                "learning_rate": 6.25e-5,
                "adam_epsilon": 1.5e-4,
                "gradient_clip": 10.0,
                "learning_starts": 20_000,
                "target_update_interval": 8_000,
            },
        },
        borrowed={"gradient_clip": ZOO},
    ),
    "iqn": Recipe(
        summary="learns the whole quantile function of the return, which can be sampled at any τ",
        paper="Dabney, Ostrovski, Silver and Munos 2018, arXiv 1806.06923",
        head="implicit",
    ),
    "rainbow-iqn": Recipe(
        summary="IQN with the other parts of Rainbow",
        paper="Toromanoff, Wirbel and Moutarde 2019, arXiv 1908.04683",
        head="implicit",
        priority_exponent=0.2,
        noisy_sigma=0.1,
        **RAINBOW,
        on={
            "atari-paper": {"learning_starts": 20_000, "target_update_interval": 8_000},
            # With 0.1 an agent may explore too little to find the first reward.
            "minatar": {"noisy_sigma": 0.5},
            "small": {"noisy_sigma": 0.5, "n_step": 10},
        },
        borrowed=dict.fromkeys(
            ("learning_starts", "target_update_interval"), "Rainbow, Hessel et al. 2018"
        ),
    ),
    "m-iqn": Recipe(
        summary="IQN with the scaled log-policy added to the reward (Munchausen RL)",
        paper="Vieillard, Pietquin and Geist 2020, arXiv 2007.14430",
        head="implicit",
        target="munchausen",
        on={
            "atari-paper": {
                "learning_starts": 20_000,
                "target_update_interval": 8_000,
                "epsilon_steps": 250_000,
            }
        },
    ),
    "fqf": Recipe(
        summary="IQN with quantile fractions τ proposed by a second network",
        paper="Yang et al. 2019, arXiv 1911.02140",
        head="fractions",
    ),
    "hl-gauss": Recipe(
        summary="DQN that learns the mean return by classification over bins",
        paper="Farebrother et al. 2024, arXiv 2403.03950",
        head="hl-gauss",
    ),
}

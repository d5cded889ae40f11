"""Distributional and risk-sensitive reinforcement learning with implicit quantile networks."""

from quantail import startup as _startup  # noqa: F401, I001 - before anything else is imported
from importlib import import_module
from typing import TYPE_CHECKING, Any

from quantail.registration import register as _register

if TYPE_CHECKING:
    from quantail.agents.agent import Agent
    from quantail.api import make
    from quantail.config import Config
    from quantail.envs.family import EnvFamily
    from quantail.errors import QuantailError
    from quantail.evaluation.calibration import calibrate
    from quantail.evaluation.evaluate import Evaluation, evaluate
    from quantail.evaluation.protocols import Protocol
    from quantail.evaluation.risk_profile import risk_profile
    from quantail.recipes import Preset, Recipe, configure
    from quantail.registry import (
        register,
        register_agent,
        register_callback,
        register_exploration,
        register_family,
        register_head,
        register_learner,
        register_optimizer,
        register_preset,
        register_protocol,
        register_risk,
        register_sampler,
        register_schedule,
        register_target,
        register_torso,
    )
    from quantail.risk import CPW, CVaR, Neutral, Norm, Pow, Wang
    from quantail.runs.run import Run, read_run
    from quantail.settings import setting
    from quantail.training.callbacks import Callback
    from quantail.training.loggers.terminal import ProgressBar
    from quantail.training.train import load, resume, train

__version__ = "0.1.0"

__all__ = [
    "CPW",
    "Agent",
    "CVaR",
    "Callback",
    "Config",
    "EnvFamily",
    "Evaluation",
    "Neutral",
    "Norm",
    "Pow",
    "Preset",
    "ProgressBar",
    "Protocol",
    "QuantailError",
    "Recipe",
    "Run",
    "Wang",
    "calibrate",
    "configure",
    "evaluate",
    "load",
    "make",
    "read_run",
    "register",
    "register_agent",
    "register_callback",
    "register_exploration",
    "register_family",
    "register_head",
    "register_learner",
    "register_optimizer",
    "register_preset",
    "register_protocol",
    "register_risk",
    "register_sampler",
    "register_schedule",
    "register_target",
    "register_torso",
    "resume",
    "risk_profile",
    "setting",
    "train",
]

_HOMES = {
    "quantail.agents.agent": ("Agent",),
    "quantail.api": ("make",),
    "quantail.envs.family": ("EnvFamily",),
    "quantail.errors": ("QuantailError",),
    "quantail.evaluation.evaluate": ("Evaluation", "evaluate"),
    "quantail.evaluation.protocols": ("Protocol",),
    "quantail.evaluation.calibration": ("calibrate",),
    "quantail.evaluation.risk_profile": ("risk_profile",),
    "quantail.settings": ("setting",),
    "quantail.config": ("Config",),
    "quantail.recipes": ("Preset", "Recipe", "configure"),
    "quantail.registry": (
        "register",
        "register_agent",
        "register_callback",
        "register_exploration",
        "register_family",
        "register_head",
        "register_learner",
        "register_optimizer",
        "register_preset",
        "register_protocol",
        "register_risk",
        "register_sampler",
        "register_schedule",
        "register_target",
        "register_torso",
    ),
    "quantail.risk": ("CPW", "CVaR", "Neutral", "Norm", "Pow", "Wang"),
    "quantail.runs.run": ("Run", "read_run"),
    "quantail.training.callbacks": ("Callback",),
    "quantail.training.loggers.terminal": ("ProgressBar",),
    "quantail.training.train": ("load", "resume", "train"),
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: torch takes seconds, `quantail --help` should not."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'quantail' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names too, which are imported when they are first used."""
    return sorted({*globals(), *__all__})


_register()  # so that gymnasium.make knows the worlds

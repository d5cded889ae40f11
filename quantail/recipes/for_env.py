"""The configuration of a run in an environment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from quantail.agents.agent import Risk
from quantail.config import PARTS, RISKS, Changes, Config, flattened
from quantail.config.toml import naming
from quantail.envs import EnvSource, find_family
from quantail.recipes.compose import Composition, composition, preset_file
from quantail.risk import parse_risk
from quantail.trust import Trust, origin_of


def configure(
    env: EnvSource,
    *,
    agent: str | None = None,
    risk: Risk | None = None,
    preset: str | Path | None = None,
    trust: Trust = (),
    **settings: Any,
) -> Config:
    """Return the configuration that `quantail.train` uses for these arguments.

        config = quantail.configure("CartPole-v1", agent="qr-dqn", n_step=3)
        quantail.train("CartPole-v1", config=config)

    Args:
        env: The id of a Gymnasium environment, or a function that makes one.
        agent: The name of an agent; by default "iqn".
        risk: The risk measure of training and evaluation; by default "neutral".
        preset: The name of a preset or the path of a TOML file; by default the preset for the
            environment.
        trust: Modules that a preset file may import.
        settings: Any other settings by name.
    """
    named = {} if agent is None else {"agent": agent}
    return configured(env, preset, settings | named, risk=risk, trust=trust).config


def configured(
    env: EnvSource,
    preset: str | Path | None,
    changes: Changes,
    *,
    risk: Risk | None = None,
    trust: Trust = (),
) -> Composition:
    """Compose the configuration of a run in an environment, whose family names the default preset.

    What the preset file names is imported only from modules that the user trusts. Risk measures are in
    their canonical text form, as results name them.
    """
    family = find_family(env)
    preset, changes = str(preset or family.preset), flattened(changes)
    if risk is not None:
        changes |= {"risk": str(parse_risk(risk))}
    named = [env, *(value for name, value in changes.items() if name in (*RISKS, *PARTS))]
    origin = origin_of(preset, trust, *named) if preset_file(preset) else None
    composed = composition(preset, changes, family.preset, origin, family.name)
    config = composed.config
    for name in RISKS:
        if origin is not None and composed.sources.get(name) == preset:
            with naming(preset):
                parse_risk(config.to_dict()[name], origin)
    measure = parse_risk(config.risk.risk, origin) if risk is None else parse_risk(risk)
    canonical = config.risk.canonical(measure, config.risk.measures(measure, origin))
    return replace(composed, config=replace(config, risk=canonical))

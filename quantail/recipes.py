"""The named agents, and the presets that fit them to a kind of environment.

A run's settings are the defaults, changed by the preset, changed by the agent, changed by the user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, did_you_mean
from quantail.settings import Settings, read_toml


@dataclass(frozen=True)
class Recipe:
    """An agent: one line about it, its paper, and the settings that make it this agent."""

    summary: str
    paper: str
    parts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Preset:
    """Settings for a kind of environment, named only where they differ from the defaults."""

    summary: str
    source: str
    settings: Mapping[str, Any]


AGENTS: dict[str, Recipe] = {
    "iqn": Recipe(
        summary="implicit quantiles: the whole quantile function of the return, sampled at any τ",
        paper="Dabney, Ostrovski, Silver and Munos 2018, arXiv 1806.06923",
    ),
}

PRESETS: dict[str, Preset] = {
    "atari-paper": Preset(
        summary="ALE games, as in the paper: 200M frames, one million transitions of replay",
        source="DQN, Mnih et al. 2015, as IQN uses it",
        settings={
            "stack": 4,
            "max_episode_steps": 27_000,  # 108,000 frames
            "clip_rewards": 1.0,
            "action_repeat": 4,
            "no_ops": 30,
            "life_loss_ends": True,
            "evaluation_steps": 125_000,  # 500,000 frames
            "checkpoint_every": 25_000,
        },
    ),
    "minatar": Preset(
        summary="MinAtar games: minutes on a laptop",
        source="ours, tuned on Breakout",
        settings={
            "steps": 100_000,
            "max_episode_steps": 5_000,
            "head_size": 128,  # as MinAtar's own DQN, Young and Tian 2019
            "online_samples": 8,
            "target_samples": 8,
            "policy_samples": 8,
            "learning_rate": 1e-3,
            "target_every": 1_000,
            "learn_start": 2_000,
            "replay_capacity": 100_000,
            "epsilon_steps": 25_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 10_000,
            "log_every": 1_000,
            "checkpoint_every": 10_000,
        },
    ),
    "small": Preset(
        summary="small observations (vectors, one-hot): minutes on a laptop",
        source="ours, tuned on CartPole",
        settings={
            "steps": 50_000,
            "head_size": 128,
            "online_samples": 8,
            "target_samples": 8,
            "policy_samples": 8,
            "n_step": 10,
            "learning_rate": 1e-3,
            "adam_epsilon": 1e-8,
            "batch_size": 64,
            "update_every": 2,
            "target_every": 500,
            "learn_start": 1_000,
            "replay_capacity": 50_000,
            "epsilon_steps": 10_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 5_000,
            "log_every": 1_000,
            "checkpoint_every": 10_000,
        },
    ),
}


def compose(preset: str, changes: Mapping[str, Any], base: str = "") -> Settings:
    """The effective settings: defaults, then preset, then agent, then the user's own changes.

    A TOML file lies over the preset `base`, so that it need only name what it changes.
    """
    under = PRESETS[base].settings if base and preset not in PRESETS else {}
    chosen = {**under, **preset_settings(preset), **changes}
    agent = str(chosen.get("agent", Settings.agent))
    if agent not in AGENTS:
        known = ", ".join(AGENTS)
        raise QuantailError(f"unknown agent {agent!r}: it takes {known}.{did_you_mean(agent, AGENTS)}")
    parts = {k: v for k, v in AGENTS[agent].parts.items() if k not in changes}
    return Settings().with_changes({**chosen, **parts})


def preset_source(preset: str) -> str:
    """Where the values that a preset changes come from."""
    return PRESETS[preset].source if preset in PRESETS else preset


def preset_settings(preset: str) -> Mapping[str, Any]:
    """What a preset, by name or as a TOML file, changes."""
    if preset in PRESETS:
        return PRESETS[preset].settings
    if preset.endswith(".toml"):
        return read_toml(Path(preset))
    known = ", ".join(PRESETS)
    raise QuantailError(
        f"unknown preset {preset!r}: it takes {known} or the path of a .toml file."
        f"{did_you_mean(preset, PRESETS)}"
    )

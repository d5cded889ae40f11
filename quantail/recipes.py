"""The named agents, and presets of settings for different kinds of environments.

An agent is not a class but a combination of parts. The settings of a run are the defaults, changed by
the preset, then by the agent (its parts, and its settings for that preset), then by the user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, did_you_mean
from quantail.networks import head_config
from quantail.settings import (
    ABOUT,
    APEX,
    FQF,
    MUNCHAUSEN,
    NATURE,
    NOISY,
    OURS,
    PRIORITIZED,
    Settings,
    coerce,
    only_with,
    read_toml,
)

Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Recipe:
    """An agent: a summary, its paper, its parts, and its settings for some presets.

    The settings for `atari-paper` come from the agent's paper, except those in `borrowed`, which come
    from the source given there. The settings for other presets are ours.
    """

    summary: str
    paper: str
    parts: Changes
    on: Mapping[str, Changes] = field(default_factory=dict)
    borrowed: Mapping[str, str] = field(default_factory=dict)  # settings from another source


@dataclass(frozen=True)
class Preset:
    """Settings for a kind of environment, as far as they differ from the defaults."""

    summary: str
    source: str
    settings: Changes
    heads: Mapping[str, Changes] = field(default_factory=dict)  # additional settings for a head
    like: str = ""  # the preset whose agent-specific settings also apply to this one


TUNED_DOUBLE = {"optimizer": "rmsprop", "learning_rate": 2.5e-4, "target_update_interval": 30_000}
ZOO = "DQN Zoo, Quan and Ostrovski 2020"
# A quarter of the learning rate and of the square root of ε.
SLOWER_DOUBLE = TUNED_DOUBLE | {"learning_rate": 2.5e-4 / 4, "rmsprop_epsilon": 0.01 / 32**2 / 16}
RAINBOW = {"dueling": True, "noisy": True, "double": True, "n_step": 3, "replay": "prioritized"}

AGENTS: dict[str, Recipe] = {
    "dqn": Recipe(
        summary="learns the mean return, with a target network and experience replay",
        paper="Mnih et al. 2015, doi 10.1038/nature14236",
        parts={"head": "expected"},
        on={
            "atari-paper": {
                "optimizer": "rmsprop",
                "learning_rate": 2.5e-4,
                "epsilon_end": 0.1,
                "evaluation_epsilon": 0.05,
            }
        },
    ),
    "double-dqn": Recipe(
        summary="DQN in which the online network selects the action of the target",
        paper="van Hasselt, Guez and Silver 2016, arXiv 1509.06461",
        parts={"head": "expected", "double": True},
        on={"atari-paper": TUNED_DOUBLE},
    ),
    "dueling-dqn": Recipe(
        summary="Double DQN with separate streams for the state value and the advantages",
        paper="Wang et al. 2016, arXiv 1511.06581",
        parts={"head": "expected", "double": True, "dueling": True},
        on={"atari-paper": SLOWER_DOUBLE | {"gradient_clip": 10.0}},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "prioritized-dqn": Recipe(
        summary="Double DQN that replays transitions with large errors more often",
        paper="Schaul et al. 2016, arXiv 1511.05952",
        parts={"head": "expected", "double": True, "replay": "prioritized"},
        on={"atari-paper": SLOWER_DOUBLE},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "prioritized-dueling-dqn": Recipe(
        summary="Dueling DQN with prioritized replay",
        paper="Wang et al. 2016, arXiv 1511.06581",
        parts={"head": "expected", "double": True, "dueling": True, "replay": "prioritized"},
        on={"atari-paper": SLOWER_DOUBLE | {"gradient_clip": 10.0}},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "c51": Recipe(
        summary="learns the probabilities of fixed returns, 51 in the paper",
        paper="Bellemare, Dabney and Munos 2017, arXiv 1707.06887",
        parts={"head": "categorical"},
        on={"atari-paper": {"learning_rate": 2.5e-4}},
    ),
    "qr-dqn": Recipe(
        summary="learns the quantiles of the return at fixed fractions τ",
        paper="Dabney, Rowland, Bellemare and Munos 2017, arXiv 1710.10044",
        parts={"head": "quantiles"},
    ),
    "rainbow": Recipe(
        summary="C51 with double, dueling, noisy, 3-step and prioritized parts",
        paper="Hessel et al. 2018, arXiv 1710.02298",
        parts={"head": "categorical", **RAINBOW, "priority_exponent": 0.5},
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
        parts={"head": "implicit"},
    ),
    "rainbow-iqn": Recipe(
        summary="IQN with the other parts of Rainbow",
        paper="Toromanoff, Wirbel and Moutarde 2019, arXiv 1908.04683",
        parts={"head": "implicit", **RAINBOW, "priority_exponent": 0.2, "noisy_sigma": 0.1},
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
        parts={"head": "implicit", "munchausen": True},
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
        parts={"head": "fractions"},
    ),
    "hl-gauss": Recipe(
        summary="DQN that learns the mean return by classification over bins",
        paper="Farebrother et al. 2024, arXiv 2403.03950",
        parts={"head": "hl-gauss"},
    ),
}

PARTS = ("head", "dueling", "noisy", "double", "munchausen", "replay")
# Settings that a part requires, unless the agent or the user overrides them.
NEEDS: dict[str, tuple[str, Changes]] = {
    "noisy": (NOISY, {"epsilon_start": 0.0, "epsilon_end": 0.0}),
    "munchausen": (MUNCHAUSEN, {"n_step": 1}),
}

ALE: Changes = {
    "stack": 4,
    "max_episode_steps": 27_000,  # 108,000 frames
    "clip_rewards": 1.0,
    "action_repeat": 4,
    "evaluation_steps": 125_000,  # 500,000 frames
    "checkpoint_every": 25_000,
}
ATARI: Changes = {**ALE, "no_ops": 30, "life_loss_ends": True}
FQF_ATARI: Changes = {"quantiles": 32}
WORLDS_RANGE: Changes = {"atoms": 61, "value_min": -20.0, "value_max": 20.0}
SMALL_RANGE: Changes = {"atoms": 101, "value_min": -100.0, "value_max": 100.0}

PRESETS: dict[str, Preset] = {
    "atari-paper": Preset(
        summary="ALE games, as in the paper: 200M frames, replay buffer of one million transitions",
        source=f"{NATURE}, as IQN uses it",
        settings=ATARI,
        heads={"fractions": FQF_ATARI},
    ),
    "atari-fast": Preset(
        summary="as atari-paper with fewer, stratified samples of τ: half the time, no more variance",
        source=f"{NATURE}, as IQN uses it",
        settings=ATARI,
        heads={
            "fractions": FQF_ATARI,
            "implicit": {
                "online_samples": 24,
                "target_samples": 24,
                "policy_samples": 8,
                "tau_sampling": "stratified",
                # The loss sums over N, so the gradient is 24/64 of the paper's; ε is scaled likewise.
                "adam_epsilon": 0.01 / 32 * 24 / 64,
            },
        },
        like="atari-paper",
    ),
    "atari-sticky": Preset(
        summary="as atari-paper with sticky actions, and without no-ops and terminal life loss",
        source=f"{NATURE}, as IQN uses it, with Machado et al. 2018, arXiv 1709.06009",
        settings={**ALE, "sticky": 0.25},
        heads={"fractions": FQF_ATARI},
        like="atari-paper",
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
            "target_update_interval": 1_000,
            "learning_starts": 2_000,
            "buffer_size": 100_000,
            "epsilon_steps": 25_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 10_000,
            "log_every": 1_000,
            "checkpoint_every": 10_000,
        },
        heads={"quantiles": {"quantiles": 32}, "fractions": {"quantiles": 16}},
    ),
    "worlds": Preset(
        summary="worlds with known return distributions: settings that make the learned ones accurate",
        source="ours",
        settings={
            "steps": 80_000,
            "num_envs": 8,
            "mlp_sizes": (64,),
            "head_size": 64,
            "embedding_size": 32,
            "online_samples": 32,
            "target_samples": 16,
            "tau_sampling": "stratified",
            "kappa": 0.1,  # 1 smooths the distribution; with 0 deterministic returns converge slowly
            "learning_rate": 2e-3,
            "adam_epsilon": 1e-8,
            "target_update_interval": 160,
            "learning_starts": 1_000,
            "buffer_size": 80_000,  # the whole run, so that outcomes occur in their true proportions
            "epsilon_end": 0.5,  # keeps visiting every state
            "epsilon_steps": 20_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 80_000,  # only at the end, so that the best weights have converged
            "evaluation_episodes": 200,
            "log_every": 4_000,
            "checkpoint_every": 40_000,
        },
        heads={
            "expected": {"kappa": 100.0},  # otherwise large errors are clipped and the mean is biased
            "categorical": WORLDS_RANGE,
            "hl-gauss": WORLDS_RANGE,
            "quantiles": {"quantiles": 32},
            "fractions": {"quantiles": 24},
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
            "train_frequency": 2,
            "target_update_interval": 500,
            "learning_starts": 1_000,
            "buffer_size": 50_000,
            "epsilon_steps": 10_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 5_000,
            "log_every": 1_000,
            "checkpoint_every": 10_000,
        },
        heads={
            "categorical": SMALL_RANGE,
            "hl-gauss": SMALL_RANGE,
            "quantiles": {"quantiles": 32},
            "fractions": {"quantiles": 16},
        },
    ),
}


def compose(preset: str, changes: Changes, base: str = "") -> Settings:
    """Return the effective settings: defaults, changed by preset, agent and user in this order.

    A TOML file is applied on top of the preset `base` and of its agent, so it needs to list only what it
    changes. If the user chooses another agent than the file's, the file does not change that agent.
    """
    merged = {k: v for _, values in _layers(preset, changes, base) for k, v in values.items()}
    settings = Settings().with_changes(merged)
    head_config(settings)  # refuses what contradicts itself
    for name in changes:
        if not settings.is_active(name):
            part = ABOUT[name].only[0]
            value = getattr(settings, part)
            value = ("yes" if value else "no") if isinstance(value, bool) else value
            raise QuantailError(
                f"{name} has no effect here: it is used {only_with(name)}, and {part} is {value}."
            )
    return settings


def sources(preset: str, changes: Changes, base: str = "") -> dict[str, str]:
    """Return the source of each setting that differs from its default."""
    settings, plain = compose(preset, changes, base), Settings()
    recipe = AGENTS[settings.agent]
    named = {
        name: recipe.borrowed.get(name, source) if source == recipe.paper else source
        for source, values in _layers(preset, changes, base)
        for name in values
    }
    return {k: v for k, v in named.items() if getattr(settings, k) != getattr(plain, k)}


def parts_of(settings: Settings) -> list[str]:
    """Describe the parts in which settings differ from the agent that they name."""
    recipe = AGENTS[settings.agent]
    usual = Settings().with_changes(recipe.parts)
    differing = []
    for name in PARTS:
        value = getattr(settings, name)
        if value != getattr(usual, name):
            differing.append(
                {True: f"with {name}", False: f"without {name}"}.get(value, f"with {value} {name}")
            )
    return differing


def _layers(preset: str, changes: Changes, base: str) -> list[tuple[str, Changes]]:
    """Return the changes to the defaults in the order in which they apply, each with its source."""
    is_file = preset not in PRESETS
    under = base if is_file else preset
    file = dict(preset_settings(preset)) if is_file else {}
    of_file = str(file.get("agent", changes.get("agent", Settings.agent)))
    agent = str(changes.get("agent", of_file))
    for name in (of_file, agent):
        if name not in AGENTS:
            known = ", ".join(AGENTS)
            raise QuantailError(f"unknown agent {name!r}: it takes {known}.{did_you_mean(name, AGENTS)}")
    if agent != of_file:
        # The user chose another agent than the file: ignore the file's settings that agents define.
        defined = {"agent", "n_step", *PARTS, *_defined_by(of_file, under), *_defined_by(agent, under)}
        file = {name: value for name, value in file.items() if name not in defined}
    recipe = AGENTS[agent]
    above = {**recipe.parts, **file, **changes}
    needs = [NEEDS[part] for part in NEEDS if coerce(part, above.get(part, False))]
    of_preset: list[tuple[str, Changes]] = []
    if under:
        about = PRESETS[under]
        for_head = about.heads.get(str(above["head"]), {})
        published = about.heads.get("fractions") is FQF_ATARI and above["head"] == "fractions"
        of_preset = [(about.source, about.settings), (FQF if published else OURS, for_head)]
    for_ray = {"replay": "prioritized"} if above.get("engine") == "ray" else {}
    layers = [
        *of_preset,
        *needs,
        (recipe.paper, {"agent": agent, **recipe.parts}),
        (APEX, for_ray),
        (recipe.paper if _like(under) == "atari-paper" else OURS, recipe.on.get(_like(under), {})),
        (preset, file),
        ("you", changes),
    ]
    # β of prioritized replay reaches 1 after the steps that the run starts with. The number is saved
    # with the run, so that β stays at 1 when the run is extended.
    steps = next((v["steps"] for _, v in reversed(layers) if "steps" in v), Settings.steps)
    return [(PRIORITIZED, {"importance_steps": coerce("steps", steps)}), *layers]


def _like(preset: str) -> str:
    """Return the preset whose agent-specific settings apply to this one."""
    return PRESETS[preset].like or preset if preset else ""


def _defined_by(agent: str, preset: str) -> set[str]:
    """Return the names of the settings that an agent defines."""
    recipe = AGENTS[agent]
    heads = PRESETS[preset].heads if preset else {}
    needed = [name for part in NEEDS if recipe.parts.get(part) for name in NEEDS[part][1]]
    return {
        *recipe.parts,
        *recipe.on.get(_like(preset), {}),
        *heads.get(recipe.parts["head"], {}),
        *needed,
    }


def preset_settings(preset: str) -> Changes:
    """Return the settings that a preset changes, given its name or the path of a TOML file."""
    if preset in PRESETS:
        return PRESETS[preset].settings
    if preset.endswith(".toml"):
        return read_toml(Path(preset))
    known = ", ".join(PRESETS)
    raise QuantailError(
        f"unknown preset {preset!r}: it takes {known} or the path of a .toml file."
        f"{did_you_mean(preset, PRESETS)}"
    )

"""The named agents, and the presets that fit them to a kind of environment.

An agent is not a class: it is the parts that it names. A run's settings are the defaults, changed by
the preset, changed by the agent (its parts, and what it needs on that preset), changed by the user.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, did_you_mean
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
    """An agent: one line about it, its paper, its parts, and what else it needs on a preset.

    The settings for `atari-paper` are those of the paper, or of what is `borrowed`; those for other
    presets are ours.
    """

    summary: str
    paper: str
    parts: Changes
    on: Mapping[str, Changes] = field(default_factory=dict)
    borrowed: Mapping[str, str] = field(default_factory=dict)  # settings whose source is another


@dataclass(frozen=True)
class Preset:
    """Settings for a kind of environment, named only where they differ from the defaults."""

    summary: str
    source: str
    settings: Changes
    heads: Mapping[str, Changes] = field(default_factory=dict)  # what a head needs there besides
    like: str = ""  # the preset that it takes the agents' own settings from, if not itself


TUNED_DOUBLE = {"optimizer": "rmsprop", "learning_rate": 2.5e-4, "target_every": 30_000}
ZOO = "DQN Zoo, Quan and Ostrovski 2020"
# A quarter of the rate, and of the root of epsilon.
SLOWER_DOUBLE = TUNED_DOUBLE | {"learning_rate": 2.5e-4 / 4, "rmsprop_epsilon": 0.01 / 32**2 / 16}
RAINBOW = {"dueling": True, "noisy": True, "double": True, "n_step": 3, "replay": "prioritized"}

AGENTS: dict[str, Recipe] = {
    "dqn": Recipe(
        summary="the mean of the return, with a target network and replay",
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
        summary="DQN whose online network chooses the target's action",
        paper="van Hasselt, Guez and Silver 2016, arXiv 1509.06461",
        parts={"head": "expected", "double": True},
        on={"atari-paper": TUNED_DOUBLE},
    ),
    "dueling-dqn": Recipe(
        summary="Double DQN with streams for the state's value and the actions' advantages",
        paper="Wang et al. 2016, arXiv 1511.06581",
        parts={"head": "expected", "double": True, "dueling": True},
        on={"atari-paper": SLOWER_DOUBLE | {"gradient_clip": 10.0}},
        borrowed={"rmsprop_epsilon": ZOO},
    ),
    "prioritized-dqn": Recipe(
        summary="Double DQN that replays more often what it predicted worst",
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
        summary="the chances of fixed returns, 51 in the paper",
        paper="Bellemare, Dabney and Munos 2017, arXiv 1707.06887",
        parts={"head": "categorical"},
        on={"atari-paper": {"learning_rate": 2.5e-4}},
    ),
    "qr-dqn": Recipe(
        summary="the returns at fixed quantiles",
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
                "learn_start": 20_000,
                "target_every": 8_000,
            },
        },
        borrowed={"gradient_clip": ZOO},
    ),
    "iqn": Recipe(
        summary="implicit quantiles: the whole quantile function of the return, sampled at any τ",
        paper="Dabney, Ostrovski, Silver and Munos 2018, arXiv 1806.06923",
        parts={"head": "implicit"},
    ),
    "rainbow-iqn": Recipe(
        summary="IQN with the other parts of Rainbow",
        paper="Toromanoff, Wirbel and Moutarde 2019, arXiv 1908.04683",
        parts={"head": "implicit", **RAINBOW, "priority_exponent": 0.2, "noisy_sigma": 0.1},
        on={
            "atari-paper": {"learn_start": 20_000, "target_every": 8_000},
            # With 0.1 an agent may never meet the first reward.
            "minatar": {"noisy_sigma": 0.5},
            "small": {"noisy_sigma": 0.5, "n_step": 10},
        },
        borrowed=dict.fromkeys(("learn_start", "target_every"), "Rainbow, Hessel et al. 2018"),
    ),
    "m-iqn": Recipe(
        summary="IQN with Munchausen's log-policy in the reward",
        paper="Vieillard, Pietquin and Geist 2020, arXiv 2007.14430",
        parts={"head": "implicit", "munchausen": True},
        on={"atari-paper": {"learn_start": 20_000, "target_every": 8_000, "epsilon_steps": 250_000}},
    ),
    "fqf": Recipe(
        summary="implicit quantiles at levels that a second network learns to choose",
        paper="Yang et al. 2019, arXiv 1911.02140",
        parts={"head": "fractions"},
    ),
}

PARTS = ("head", "dueling", "noisy", "double", "munchausen", "replay")
# What a part needs of the other settings, unless an agent or the user says otherwise.
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

PRESETS: dict[str, Preset] = {
    "atari-paper": Preset(
        summary="ALE games, as in the paper: 200M frames, one million transitions of replay",
        source=f"{NATURE}, as IQN uses it",
        settings=ATARI,
        heads={"fractions": FQF_ATARI},
    ),
    "atari-fast": Preset(
        summary="as atari-paper, with fewer, stratified levels: half the time, no more variance",
        source=f"{NATURE}, as IQN uses it",
        settings=ATARI,
        heads={
            "fractions": FQF_ATARI,
            "implicit": {
                "online_samples": 24,
                "target_samples": 24,
                "policy_samples": 8,
                "tau": "stratified",
                # The loss sums over N, so the gradient is 24/64 of the paper's, and so is epsilon.
                "adam_epsilon": 0.01 / 32 * 24 / 64,
            },
        },
        like="atari-paper",
    ),
    "atari-sticky": Preset(
        summary="as atari-paper, with sticky actions and without no-ops and the signal of a lost life",
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
            "target_every": 1_000,
            "learn_start": 2_000,
            "replay_capacity": 100_000,
            "epsilon_steps": 25_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 10_000,
            "log_every": 1_000,
            "checkpoint_every": 10_000,
        },
        heads={"quantiles": {"quantiles": 32}, "fractions": {"quantiles": 16}},
    ),
    "worlds": Preset(
        summary="worlds whose return law is known: targets that make the learned law the exact one",
        source="ours",
        settings={
            "steps": 80_000,
            "envs": 8,
            "mlp_sizes": (64,),
            "head_size": 64,
            "embedding_size": 32,
            "online_samples": 32,
            "target_samples": 16,
            "tau": "stratified",
            "kappa": 0.1,  # 1 would smooth the law; with 0 what is sure takes long to settle
            "learning_rate": 2e-3,
            "adam_epsilon": 1e-8,
            "target_every": 160,
            "learn_start": 1_000,
            "replay_capacity": 80_000,  # all of it: chances are learned from how often a thing was seen
            "epsilon_end": 0.5,  # every state goes on being seen
            "epsilon_steps": 20_000,
            "evaluation_epsilon": 0.0,
            "evaluation_every": 80_000,  # at its end alone: the law of the best weights has settled
            "evaluation_episodes": 200,
            "log_every": 4_000,
            "checkpoint_every": 40_000,
        },
        heads={
            "expected": {"kappa": 100.0},  # else errors are clipped, and what is learned is not the mean
            "categorical": {"atoms": 61, "value_min": -20.0, "value_max": 20.0},
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
        heads={
            "categorical": {"atoms": 101, "value_min": -100.0, "value_max": 100.0},
            "quantiles": {"quantiles": 32},
            "fractions": {"quantiles": 16},
        },
    ),
}


def compose(preset: str, changes: Changes, base: str = "") -> Settings:
    """The effective settings: defaults, then preset, then agent, then the user's own changes.

    A TOML file lies over the preset `base` and over its agent, so that it need only name what it
    changes. Where the user names another agent than the file's, that agent is itself, whole.
    """
    merged = {k: v for _, values in _layers(preset, changes, base) for k, v in values.items()}
    settings = Settings().with_changes(merged)
    for name in changes:
        if not settings.counts(name):
            part = ABOUT[name].only[0]
            value = getattr(settings, part)
            value = ("yes" if value else "no") if isinstance(value, bool) else value
            raise QuantailError(
                f"{name} has no effect here: it counts {only_with(name)}, and {part} is {value}."
            )
    return settings


def sources(preset: str, changes: Changes, base: str = "") -> dict[str, str]:
    """Where each setting that differs from its default comes from."""
    settings, plain = compose(preset, changes, base), Settings()
    recipe = AGENTS[settings.agent]
    named = {
        name: recipe.borrowed.get(name, source) if source == recipe.paper else source
        for source, values in _layers(preset, changes, base)
        for name in values
    }
    return {k: v for k, v in named.items() if getattr(settings, k) != getattr(plain, k)}


def parts_of(settings: Settings) -> list[str]:
    """Where settings are another agent than the one they name: the parts that differ, in words."""
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
    """What changes the defaults, in the order in which it does, each with its source."""
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
        # Another agent than the file's: what either of them decides is not the file's to say.
        decided = {"agent", "n_step", *PARTS, *_decided(of_file, under), *_decided(agent, under)}
        file = {name: value for name, value in file.items() if name not in decided}
    recipe = AGENTS[agent]
    above = {**recipe.parts, **file, **changes}
    needs = [NEEDS[part] for part in NEEDS if coerce(part, above.get(part, False))]
    of_preset: list[tuple[str, Changes]] = []
    if under:
        about = PRESETS[under]
        for_head = about.heads.get(str(above["head"]), {})
        published = about.heads.get("fractions") is FQF_ATARI and above["head"] == "fractions"
        of_preset = [(about.source, about.settings), (FQF if published else OURS, for_head)]
    elsewhere = {"replay": "prioritized"} if above.get("engine") == "ray" else {}
    layers = [
        *of_preset,
        *needs,
        (recipe.paper, {"agent": agent, **recipe.parts}),
        (APEX, elsewhere),
        (recipe.paper if _like(under) == "atari-paper" else OURS, recipe.on.get(_like(under), {})),
        (preset, file),
        ("you", changes),
    ]
    # β of prioritized replay reaches 1 at the end of the run as it begins. The number is written into
    # the run, so that β stays there when the run is lengthened.
    steps = next((v["steps"] for _, v in reversed(layers) if "steps" in v), Settings.steps)
    return [(PRIORITIZED, {"importance_steps": coerce("steps", steps)}), *layers]


def _like(preset: str) -> str:
    """The preset whose settings for an agent count with this one."""
    return PRESETS[preset].like or preset if preset else ""


def _decided(agent: str, preset: str) -> set[str]:
    """The settings that an agent decides."""
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

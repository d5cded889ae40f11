"""Presets: settings for different kinds of environments, as far as they differ from the defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantail.config import Changes, flattened, require_settings
from quantail.settings import NATURE


@dataclass(frozen=True, init=False)
class Preset:
    """Settings for a kind of environment.

        quantail.register_preset("mine", quantail.Preset(like="small", steps=20_000, n_step=3))

    Args:
        summary: One line for `quantail presets`.
        source: Where the settings come from.
        heads: Additional settings for a head, by the name of the head.
        borrowed: Settings that come from another source, with that source.
        like: Another preset, from whose settings this one starts. Agents have the settings that they
            have on that one.
        settings: Any settings by name.
    """

    settings: Changes
    summary: str
    source: str
    heads: Mapping[str, Changes]
    borrowed: Mapping[str, str]  # settings from another source
    like: str

    def __init__(
        self,
        *,
        summary: str = "",
        source: str = "",
        heads: Mapping[str, Changes] | None = None,
        borrowed: Mapping[str, str] | None = None,
        like: str = "",
        **settings: Any,
    ) -> None:
        for changes in (settings, *(heads or {}).values()):
            require_settings(changes)
        object.__setattr__(self, "settings", flattened(settings))
        object.__setattr__(self, "summary", summary)
        object.__setattr__(self, "source", source)
        object.__setattr__(self, "heads", {k: flattened(v) for k, v in (heads or {}).items()})
        object.__setattr__(self, "borrowed", borrowed or {})
        object.__setattr__(self, "like", like)


IQN_ATARI = f"{NATURE}, as IQN uses it"
WORLDS_RANGE: Changes = {"atoms": 61, "value_min": -20.0, "value_max": 20.0}
SMALL_RANGE: Changes = {"atoms": 101, "value_min": -100.0, "value_max": 100.0}

# Threads for a small network: a second one makes a run 10 % faster on idle cores, and 20 times slower on
# busy ones. It is a rule and not a measurement, because the number of threads decides the last bits.
SMALL_NETWORK = 1

PRESETS: dict[str, Preset] = {
    "atari-paper": Preset(
        summary="ALE games, as in the paper: 200M frames, replay buffer of one million transitions",
        source=IQN_ATARI,
        family="ale",
        stack=4,
        max_episode_steps=27_000,  # 108,000 frames
        clip_rewards=1.0,
        action_repeat=4,
        no_ops=30,
        life_loss_ends=True,
        evaluation_steps=125_000,  # 500,000 frames
        checkpoint_every=25_000,
    ),
    "atari-fast": Preset(
        summary="as atari-paper with fewer, stratified samples of τ: half the time, no more variance",
        like="atari-paper",
        heads={
            "implicit": {
                "online_samples": 24,
                "target_samples": 24,
                "policy_samples": 8,
                "tau_sampling": "stratified",
                # The loss sums over N, so the gradient is 24/64 of the paper's; ε is scaled likewise.
                "adam_epsilon": 0.01 / 32 * 24 / 64,
            },
        },
    ),
    "atari-sticky": Preset(
        summary="as atari-paper with sticky actions, and without no-ops and terminal life loss",
        source=f"{IQN_ATARI}, with Machado et al. 2018, arXiv 1709.06009",
        like="atari-paper",
        no_ops=0,
        life_loss_ends=False,
        sticky=0.25,
    ),
    "atari-laptop": Preset(
        summary="small frames and network, 3 steps, γ 0.98, few samples of τ, for Pong on one core",
        source="ours, tried on Pong only",
        like="atari-paper",
        steps=1_200_000,  # about two hours
        threads=SMALL_NETWORK,
        frame_size=64,  # about half the products of 84 by 84 pixels
        torso="nature",
        nature_channels=(16, 32, 32),
        head_size=256,
        num_envs=4,
        n_step=3,
        discount=0.98,
        learning_rate=1e-4,
        train_frequency=2,
        target_update_interval=2_000,
        learning_starts=10_000,
        buffer_size=100_000,
        epsilon_steps=150_000,
        evaluation_every=50_000,
        evaluation_episodes=3,
        evaluation_steps=0,
        log_every=1_000,
        checkpoint_every=10_000,
        heads={
            "implicit": {
                "online_samples": 8,
                "target_samples": 8,
                "policy_samples": 8,
                "tau_sampling": "stratified",
                # The loss sums over N, so the gradient is 8/64 of the paper's; ε is scaled likewise.
                "adam_epsilon": 0.01 / 32 * 8 / 64,
            },
        },
    ),
    "minatar": Preset(
        summary="MinAtar games: minutes on a laptop",
        source="ours, tuned on Breakout",
        steps=100_000,
        threads=SMALL_NETWORK,
        max_episode_steps=5_000,
        head_size=128,  # as MinAtar's own DQN, Young and Tian 2019
        online_samples=8,
        target_samples=8,
        policy_samples=8,
        learning_rate=1e-3,
        target_update_interval=1_000,
        learning_starts=2_000,
        buffer_size=100_000,
        epsilon_steps=25_000,
        evaluation_epsilon=0.0,
        evaluation_every=10_000,
        log_every=1_000,
        checkpoint_every=10_000,
        heads={"quantiles": {"quantiles": 32}, "fractions": {"quantiles": 16}},
    ),
    "worlds": Preset(
        summary="worlds with known return distributions: settings that make the learned ones accurate",
        source="ours",
        steps=80_000,
        threads=SMALL_NETWORK,
        num_envs=8,
        mlp_sizes=(64,),
        head_size=64,
        embedding_size=32,
        online_samples=32,
        target_samples=16,
        tau_sampling="stratified",
        kappa=0.1,  # 1 smooths the distribution; with 0 deterministic returns converge slowly
        learning_rate=2e-3,
        adam_epsilon=1e-8,
        target_update_interval=160,
        learning_starts=1_000,
        buffer_size=80_000,  # the whole run, so that outcomes occur in their true proportions
        epsilon_end=0.5,  # keeps visiting every state
        epsilon_steps=20_000,
        evaluation_epsilon=0.0,
        evaluation_every=80_000,  # only at the end, so that the best weights have converged
        evaluation_episodes=200,
        log_every=4_000,
        checkpoint_every=40_000,
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
        steps=50_000,
        threads=SMALL_NETWORK,
        head_size=128,
        online_samples=8,
        target_samples=8,
        policy_samples=8,
        n_step=10,
        learning_rate=1e-3,
        adam_epsilon=1e-8,
        batch_size=64,
        train_frequency=2,
        target_update_interval=500,
        learning_starts=1_000,
        buffer_size=50_000,
        epsilon_steps=10_000,
        evaluation_epsilon=0.0,
        evaluation_every=5_000,
        log_every=1_000,
        checkpoint_every=10_000,
        heads={
            "categorical": SMALL_RANGE,
            "hl-gauss": SMALL_RANGE,
            "quantiles": {"quantiles": 32},
            "fractions": {"quantiles": 16},
        },
    ),
}

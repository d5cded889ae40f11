"""All settings of a run, with their meaning, unit, range and the source of their default.

The defaults are those of the IQN paper. A preset (see `recipes.py`) lists only what it changes.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from quantail import registry
from quantail.errors import QuantailError, did_you_mean
from quantail.fields import OURS, About, coerced

Changes = Mapping[str, Any]

PAPER = "IQN, Dabney et al. 2018"
QR = "QR-DQN, Dabney et al. 2017"
NATURE = "DQN, Mnih et al. 2015"
C51 = "C51, Bellemare et al. 2017"
NOISY = "NoisyNet, Fortunato et al. 2018"
PRIORITIZED = "prioritized replay, Schaul et al. 2016"
MUNCHAUSEN = "Munchausen, Vieillard et al. 2020"
HL_GAUSS = "HL-Gauss, Farebrother et al. 2024"
FQF = "FQF, Yang et al. 2019"
IMPALA = "IMPALA, Espeholt et al. 2018"
APEX = "Ape-X, Horgan et al. 2018"


def _setting(default: Any, group: str, help: str, **about: Any) -> Any:
    return dataclasses.field(default=default, metadata={"about": About(group, help, **about)})


@dataclass(frozen=True)
class Settings:
    """The settings of a run. A *step* is one action of the agent; a *frame* is one of the emulator."""

    # fmt: off
    agent: str = _setting("iqn", "run", "agent to train (see `quantail agents`)")
    risk: str = _setting("neutral", "run", "risk measure for acting, targets and evaluation (see `quantail risks`)", source=PAPER)
    steps: int = _setting(50_000_000, "run", "total number of environment steps, over all environments", unit="steps", source=PAPER, least=1)
    seed: int = _setting(0, "run", "random seed, from which all random generators are derived", least=0)
    num_envs: int = _setting(1, "run", "number of parallel environments, which share one forward pass", least=1)
    engine: str = _setting("local", "run", "where transitions are collected: in this process, or by actors on Ray with slightly outdated weights (not reproducible bit for bit)", choices=("local", "ray"))
    actors: int = _setting(4, "run", "number of actor processes, each with `num_envs` environments", source=OURS, least=1, only=("engine", "ray"))
    device: str = _setting("auto", "run", "torch device of the networks; auto uses cuda or mps if available", choices=("auto", "cpu", "cuda", "mps"))
    threads: int = _setting(0, "run", "number of CPU threads of torch while the run runs; 0 keeps the number that torch has; decides the last bits of a result", least=0)

    precision: str = _setting("float32", "run", "precision of matrix products in an update; tf32 and bfloat16 need a GPU that supports them (slow on most CPUs); targets and losses stay float32", choices=("float32", "tf32", "bfloat16"))
    compile: bool = _setting(False, "run", "compile the update with torch.compile; slower for Atari on a CPU (see docs/performance.md)")

    behaviour_risk: str = _setting("", "risk", "risk measure for acting during training; `risk` if empty")
    target_risk: str = _setting("", "risk", "risk measure that selects the greedy action a* of the target; `risk` if empty")
    evaluation_risk: str = _setting("", "risk", "risk measure for evaluation and for the trained agent; `risk` if empty")
    risk_anneal_steps: int = _setting(0, "risk", "linearly anneal η of behaviour_risk and target_risk from neutral to its final value over this many steps after learning_starts; 0 disables annealing", unit="steps", least=0)

    stack: int = _setting(1, "environment", "number of most recent observations that are stacked", unit="observations", least=1)
    max_episode_steps: int = _setting(0, "environment", "truncate episodes after this many steps; 0 keeps the environment's own limit", unit="steps", least=0)
    clip_rewards: float = _setting(0.0, "environment", "clip rewards to [−c, c] for learning; reported returns are not clipped; 0 disables clipping", least=0)
    action_repeat: int = _setting(1, "environment", "ALE: number of frames for which each action is repeated (frame skip)", unit="frames", least=1)
    no_ops: int = _setting(0, "environment", "ALE: maximum number of no-op actions at the start of an episode, sampled uniformly", unit="frames", least=0)
    sticky: float = _setting(0.0, "environment", "ALE: sticky actions, the probability at each frame that the previous action is repeated", source="Machado et al. 2018", least=0, most=1)
    resize: str = _setting("bilinear", "environment", "ALE: interpolation for resizing the screen to 84×84; Dopamine and the original DQN use area", source="DQN Zoo, Quan and Ostrovski 2020", choices=("bilinear", "area"))
    life_loss_ends: bool = _setting(False, "environment", "ALE: treat the loss of a life as terminal for learning; the episode continues")

    head: str = _setting("implicit", "network", "representation of the return distribution")
    dueling: bool = _setting(False, "network", "dueling network: separate streams for the state value and the advantages", source="Wang et al. 2016")
    noisy: bool = _setting(False, "network", "noisy layers in the head for exploration, instead of ε-greedy", source=NOISY)
    noisy_sigma: float = _setting(0.5, "network", "σ₀, initial noise of noisy layers", source=NOISY, least=0.0001, only=("noisy", "True"))
    atoms: int = _setting(51, "network", "number of atoms of the categorical distribution, or of bins of the hl-gauss head", source=C51, least=2, of="head")
    value_min: float = _setting(-10.0, "network", "lowest return that the categorical or hl-gauss head represents (v_min)", source=C51, of="head")
    value_max: float = _setting(10.0, "network", "highest return that the categorical or hl-gauss head represents (v_max)", source=C51, of="head")
    hl_gauss_sigma: float = _setting(0.75, "network", "σ of the Gaussian around a target of the hl-gauss head, as a multiple of the width of a bin", unit="bins", source=HL_GAUSS, least=0.01, of="head")
    quantiles: int = _setting(200, "network", "number of fixed quantiles (QR-DQN) or of learned quantile fractions (FQF)", source=QR, least=1, of="head")
    torso: str = _setting("auto", "network", "torso ψ; auto chooses it by the shape of observations")
    mlp_sizes: tuple[int, ...] = _setting((128,), "network", "sizes of the hidden layers of the mlp torso", unit="units", least=1, of="torso")
    impala_width: int = _setting(1, "network", "multiplies the channels 16, 32 and 32 of the impala torso", source=IMPALA, least=1, of="torso")
    head_size: int = _setting(512, "network", "size of the hidden layer of the head f", unit="units", source=NATURE, least=1)
    embedding: str = _setting("cosine", "network", "φ, the embedding of the quantile fraction τ", source=PAPER, choices=("cosine", "mlp", "linear"), of="head")
    embedding_size: int = _setting(64, "network", "number of cosines, or of hidden units of the mlp embedding", source=PAPER, least=1, of="head")
    embedding_activation: str = _setting("relu", "network", "activation function after φ", source=PAPER, choices=("relu", "sigmoid"), of="head")
    merge: str = _setting("multiply", "network", "how ψ and φ are combined: ψφ, [ψ, φ] or ψ(1 + φ)", source=PAPER, choices=("multiply", "concatenate", "residual"), of="head")

    online_samples: int = _setting(64, "learning", "N, number of sampled quantile fractions τ of the prediction", source=PAPER, least=1, of="head")
    target_samples: int = _setting(64, "learning", "N′, number of sampled quantile fractions τ′ of the target", source=PAPER, least=1, of="head")
    policy_samples: int = _setting(32, "learning", "K, number of sampled quantile fractions for choosing an action", source=PAPER, least=1, of="head")
    tau_sampling: str = _setting("independent", "learning", "how quantile fractions τ are sampled: independently, one from each interval of length 1/N, in pairs τ and 1 − τ, or shared by the whole batch", source=PAPER, choices=("independent", "stratified", "antithetic", "shared"), of="head")
    kappa: float = _setting(1.0, "learning", "κ, threshold at which the quantile Huber loss becomes linear; 0 gives the plain quantile loss", source=QR, least=0, of="head")
    discount: float = _setting(0.99, "learning", "γ, discount factor per step", source=NATURE, least=0, most=1)
    n_step: int = _setting(1, "learning", "n of the n-step return: number of rewards before bootstrapping", unit="steps", source=PAPER, least=1)
    target: str = _setting("bellman", "learning", "target of the return distribution; munchausen adds the clipped log-policy to the reward and uses a soft value of the next state", source=PAPER)
    double: bool = _setting(False, "learning", "double Q-learning: the online network selects the action of the target", source="van Hasselt et al. 2016", of="target")
    munchausen_alpha: float = _setting(0.9, "learning", "α, weight of the log-policy", source=MUNCHAUSEN, least=0, most=1, of="target")
    munchausen_temperature: float = _setting(0.03, "learning", "τ, temperature of the softmax policy", source=MUNCHAUSEN, least=1e-6, of="target")
    munchausen_clip: float = _setting(-1.0, "learning", "l₀, lower bound of τ log π", source=MUNCHAUSEN, most=0, of="target")
    learner: str = _setting("standard", "learning", "the update: target, loss and one step of the optimizer, as in Algorithm 1 of the paper", source=PAPER)
    batch_size: int = _setting(32, "learning", "number of transitions per update", source=NATURE, least=1)
    optimizer: str = _setting("adam", "learning", "Adam, or the centered RMSProp of DQN with decay 0.95", source=QR)
    learning_rate: float = _setting(5e-5, "learning", "learning rate of the optimizer", source=QR, least=0)
    adam_epsilon: float = _setting(0.01 / 32, "learning", "ε of Adam", source=QR, least=1e-10, of="optimizer")
    rmsprop_epsilon: float = _setting(0.01 / 32**2, "learning", "ε of RMSProp, inside the square root", source=NATURE, least=1e-12, of="optimizer")
    fraction_rate: float = _setting(2.5e-9, "learning", "learning rate of FQF's fraction proposal network", source=FQF, least=0, of="head")
    gradient_clip: float = _setting(0.0, "learning", "maximum norm of the gradient; 0 disables clipping", source=PAPER, least=0)
    train_frequency: int = _setting(4, "learning", "number of steps between two updates", unit="steps", source=NATURE, least=1)
    target_update_interval: int = _setting(10_000, "learning", "number of steps between two updates of the target network", unit="steps", source=NATURE, least=1)
    learning_starts: int = _setting(50_000, "learning", "number of steps to collect before the first update", unit="steps", source=NATURE, least=1)

    sampler: str = _setting("uniform", "replay", "how transitions are sampled from the replay buffer")
    priority_exponent: float = _setting(0.6, "replay", "α, exponent of the priorities; 0 is uniform sampling", source=PRIORITIZED, least=0, most=1, of="sampler")
    importance_start: float = _setting(0.4, "replay", "initial β, exponent of the importance weights; 1 corrects the sampling bias fully", source=PRIORITIZED, least=0, most=1, of="sampler")
    importance_steps: int = _setting(50_000_000, "replay", "number of steps over which β increases to 1; by default the length of the run when it starts", unit="steps", source=PRIORITIZED, least=0, of="sampler")
    buffer_size: int = _setting(1_000_000, "replay", "capacity of the replay buffer, over all environments", unit="steps", source=NATURE, least=16)

    exploration: str = _setting("epsilon-greedy", "acting", "how the behaviour policy departs from the greedy one", source=NATURE)
    epsilon_start: float = _setting(1.0, "acting", "initial probability of a random action", source=NATURE, least=0, most=1, only=("engine", "local"))
    epsilon_end: float = _setting(0.01, "acting", "final probability of a random action", source=QR, least=0, most=1, only=("engine", "local"))
    epsilon_steps: int = _setting(1_000_000, "acting", "number of steps over which ε decreases from epsilon_start to epsilon_end, after learning_starts", unit="steps", source=QR, least=0, only=("engine", "local"))
    actor_epsilon: float = _setting(0.4, "acting", "ε of the actor that explores most, once learning has started", source=APEX, least=0, most=1, only=("engine", "ray"))
    actor_epsilon_power: float = _setting(7.0, "acting", "α, how much less the other actors explore: actor i uses ε^(1 + α i/(actors − 1))", source=APEX, least=0, only=("engine", "ray"))
    evaluation_epsilon: float = _setting(0.001, "acting", "probability of a random action during evaluation", source=QR, least=0, most=1)

    evaluation_every: int = _setting(250_000, "evaluation", "number of steps between two evaluations", unit="steps", source=PAPER, least=1)
    evaluation_episodes: int = _setting(30, "evaluation", "number of episodes per evaluation, if evaluation_steps is 0", unit="episodes", least=1)
    evaluation_steps: int = _setting(0, "evaluation", "evaluate on as many whole episodes as fit in this many steps; 0 uses evaluation_episodes instead", unit="steps", least=0)

    log_every: int = _setting(10_000, "files", "number of steps between two rows of metrics.csv", unit="steps", least=1)
    checkpoint_every: int = _setting(50_000, "files", "number of steps between two checkpoints", unit="steps", least=1)
    tensorboard: bool = _setting(False, "files", "also write TensorBoard event files")
    wandb: str = _setting("", "files", "also log to this Weights & Biases project; disabled if empty")
    # fmt: on

    # Settings of parts from outside by their dotted names, such as "head.width".
    dotted: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        for name, about in ABOUT.items():
            coerced(name, getattr(self, name), DEFAULTS[name], about)
        if self.learning_starts > self.steps:
            raise QuantailError(
                f"steps {self.steps:,} end before learning begins: "
                f"raise steps or lower learning_starts, which is {self.learning_starts:,}."
            )
        if self.learning_starts <= self.n_step * self.total_envs:
            raise QuantailError(
                f"learning_starts {self.learning_starts} comes before the first n-step return is complete: "
                f"with n_step {self.n_step} and {self.total_envs} environments it must be more than "
                f"{self.n_step * self.total_envs}."
            )
        if self.buffer_size // self.total_envs < self.stack + self.n_step + 1:
            raise QuantailError(
                f"buffer_size {self.buffer_size} leaves {self.buffer_size // self.total_envs} "
                f"steps for each of {self.total_envs} environments: "
                f"stack and n_step need at least {self.stack + self.n_step + 1}."
            )

    def is_active(self, name: str) -> bool:
        """Return whether a setting has an effect, given the other settings."""
        only, kind = ABOUT[name].only, ABOUT[name].of
        if kind:
            part = getattr(self, kind)
            return not registry.is_known(kind, part) or name in registry.flat_fields(kind, part)
        return not only or str(getattr(self, only[0])) in only[1:]

    @property
    def total_envs(self) -> int:
        """The number of environments over all actors."""
        return self.num_envs * (self.actors if self.engine == "ray" else 1)

    def names_of_code(self) -> tuple[str, ...]:
        """Return the texts of parts and risk measures that no registered name stands for.

        Those that are `module:Class` can be used again only if the user trusts the module.
        """
        named = [(kind, getattr(self, kind)) for kind in PARTS]
        named += [("risk", getattr(self, name)) for name in RISKS]
        return tuple(text for kind, text in named if registry.label(kind, text) == text)

    def played_risk(self) -> str:
        """Return the risk measure of evaluation and of the trained agent."""
        return self.evaluation_risk or self.risk

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON or TOML."""
        values = {name: getattr(self, name) for name in DEFAULTS} | dict(self.dotted)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def with_changes(self, changes: Changes) -> "Settings":
        """Return a copy with some settings changed; raise an error for unknown names and wrong types."""
        coerced = {name: coerce(name, value) for name, value in changes.items()}
        dotted = {name: coerced.pop(name) for name in changes if "." in name}
        return dataclasses.replace(self, **coerced, dotted={**self.dotted, **dotted})


RISKS = ("risk", "behaviour_risk", "target_risk", "evaluation_risk")  # settings that name a measure
# Settings that name a part, by its name or as module:Class.
PARTS = ("torso", "head", "target", "optimizer", "learner", "sampler", "exploration")
ABOUT: dict[str, About] = {
    one.name: one.metadata["about"] for one in dataclasses.fields(Settings) if one.name != "dotted"
}
DEFAULTS: dict[str, Any] = {
    one.name: one.default for one in dataclasses.fields(Settings) if one.name != "dotted"
}


def coerce(name: str, value: Any) -> Any:
    """Convert a value from Python, JSON, TOML or a flag to the type of the setting.

    The value of a dotted setting stays as it is until the part that owns it is known.
    """
    _require_setting(name)
    if is_dotted(name):
        return value
    if name in PARTS:
        return registry.text_of(name, value)
    return coerced(name, value, DEFAULTS[name], ABOUT[name])


def is_dotted(name: str) -> bool:
    """Return whether a name can be that of a setting that a part from outside has of its own."""
    kind, _, own = name.partition(".")
    return kind in PARTS and own.isidentifier()


def flattened(changes: Changes) -> dict[str, Any]:
    """Return changes with the tables of parts as dotted names.

    `{"head": {"name": "my_package:MyHead", "width": 8}}` becomes `{"head": "my_package:MyHead",
    "head.width": 8}`.
    """
    flat: dict[str, Any] = {}
    for name, value in changes.items():
        if name not in PARTS or not isinstance(value, Mapping):
            flat[name] = value
            continue
        flat |= {name if key == "name" else f"{name}.{key}": one for key, one in value.items()}
    return flat


def require_settings(changes: Changes) -> None:
    """Raise an error if one of the names is not a setting."""
    for name in flattened(changes):
        _require_setting(name)


def _require_setting(name: str) -> None:
    if name not in DEFAULTS and not is_dotted(name):
        raise QuantailError(f"unknown setting {name!r}.{did_you_mean(name, DEFAULTS)}")


def choices(name: str) -> tuple[str, ...]:
    """Return the values that a setting takes, where they can be listed."""
    if name not in PARTS:
        return ABOUT[name].choices
    return (*registry.parts(name), "module:Class")


def only_with(name: str) -> str:
    """Describe when a setting is active, such as "only with head implicit"; "" if it always is."""
    kind, values = ABOUT[name].of, list(ABOUT[name].only)
    if kind:
        values = [one for one in registry.parts(kind) if name in registry.flat_fields(kind, one)]
    elif values:
        kind = values.pop(0)
    else:
        return ""
    return f"only with {kind}" if values == ["True"] else f"only with {kind} {' or '.join(values)}"


def unit_and_source(name: str, sources: Mapping[str, str]) -> str:
    """Return the unit of a setting and the source of its value."""
    about = ABOUT[name]
    return "; ".join(part for part in (about.unit, sources.get(name, about.source)) if part)

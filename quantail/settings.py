"""All settings of a run, with their meaning, unit, range and the source of their default.

The defaults are those of the IQN paper. A preset (see `recipes.py`) lists only what it changes.
"""

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, did_you_mean

PAPER = "IQN, Dabney et al. 2018"
QR = "QR-DQN, Dabney et al. 2017"
NATURE = "DQN, Mnih et al. 2015"
C51 = "C51, Bellemare et al. 2017"
NOISY = "NoisyNet, Fortunato et al. 2018"
PRIORITIZED = "prioritized replay, Schaul et al. 2016"
MUNCHAUSEN = "Munchausen, Vieillard et al. 2020"
FQF = "FQF, Yang et al. 2019"
IMPALA = "IMPALA, Espeholt et al. 2018"
APEX = "Ape-X, Horgan et al. 2018"
OURS = "ours"


@dataclass(frozen=True)
class About:
    """The documentation and the allowed values of a setting."""

    group: str
    help: str
    unit: str = ""
    source: str = OURS
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    only: tuple[str, ...] = ()  # another setting, and those of its values with which this one is active


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
    threads: int = _setting(0, "run", "number of CPU threads for torch; 0 keeps torch's default", least=0)

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

    head: str = _setting("implicit", "network", "representation of the return distribution", choices=("expected", "categorical", "quantiles", "implicit", "fractions"))
    dueling: bool = _setting(False, "network", "dueling network: separate streams for the state value and the advantages", source="Wang et al. 2016")
    noisy: bool = _setting(False, "network", "noisy layers in the head for exploration, instead of ε-greedy", source=NOISY)
    noisy_sigma: float = _setting(0.5, "network", "σ₀, initial noise of noisy layers", source=NOISY, least=0.0001, only=("noisy", "True"))
    atoms: int = _setting(51, "network", "number of atoms of the categorical distribution", source=C51, least=2, only=("head", "categorical"))
    value_min: float = _setting(-10.0, "network", "lowest atom of the categorical distribution (v_min)", source=C51, only=("head", "categorical"))
    value_max: float = _setting(10.0, "network", "highest atom of the categorical distribution (v_max)", source=C51, only=("head", "categorical"))
    quantiles: int = _setting(200, "network", "number of fixed quantiles (QR-DQN) or of learned quantile fractions (FQF)", source=QR, least=1, only=("head", "quantiles", "fractions"))
    torso: str = _setting("auto", "network", "torso ψ; auto chooses it by the shape of observations", choices=("auto", "nature", "minatar", "impala", "mlp"))
    mlp_sizes: tuple[int, ...] = _setting((128,), "network", "sizes of the hidden layers of the mlp torso", unit="units", least=1, only=("torso", "auto", "mlp"))
    impala_width: int = _setting(1, "network", "multiplies the channels 16, 32 and 32 of the impala torso", source=IMPALA, least=1, only=("torso", "impala"))
    head_size: int = _setting(512, "network", "size of the hidden layer of the head f", unit="units", source=NATURE, least=1)
    embedding: str = _setting("cosine", "network", "φ, the embedding of the quantile fraction τ", source=PAPER, choices=("cosine", "mlp", "linear"), only=("head", "implicit", "fractions"))
    embedding_size: int = _setting(64, "network", "number of cosines, or of hidden units of the mlp embedding", source=PAPER, least=1, only=("head", "implicit", "fractions"))
    embedding_activation: str = _setting("relu", "network", "activation function after φ", source=PAPER, choices=("relu", "sigmoid"), only=("head", "implicit", "fractions"))
    merge: str = _setting("multiply", "network", "how ψ and φ are combined: ψφ, [ψ, φ] or ψ(1 + φ)", source=PAPER, choices=("multiply", "concatenate", "residual"), only=("head", "implicit", "fractions"))

    online_samples: int = _setting(64, "learning", "N, number of sampled quantile fractions τ of the prediction", source=PAPER, least=1, only=("head", "implicit"))
    target_samples: int = _setting(64, "learning", "N′, number of sampled quantile fractions τ′ of the target", source=PAPER, least=1, only=("head", "implicit"))
    policy_samples: int = _setting(32, "learning", "K, number of sampled quantile fractions for choosing an action", source=PAPER, least=1, only=("head", "implicit"))
    tau_sampling: str = _setting("independent", "learning", "how quantile fractions τ are sampled: independently, one from each interval of length 1/N, in pairs τ and 1 − τ, or shared by the whole batch", source=PAPER, choices=("independent", "stratified", "antithetic", "shared"), only=("head", "implicit"))
    kappa: float = _setting(1.0, "learning", "κ, threshold at which the quantile Huber loss becomes linear; 0 gives the plain quantile loss", source=QR, least=0, only=("head", "expected", "quantiles", "implicit", "fractions"))
    discount: float = _setting(0.99, "learning", "γ, discount factor per step", source=NATURE, least=0, most=1)
    n_step: int = _setting(1, "learning", "n of the n-step return: number of rewards before bootstrapping", unit="steps", source=PAPER, least=1)
    double: bool = _setting(False, "learning", "double Q-learning: the online network selects the action of the target", source="van Hasselt et al. 2016")
    munchausen: bool = _setting(False, "learning", "Munchausen RL: add the clipped log-policy to the reward and use a soft value of the next state", source=MUNCHAUSEN)
    munchausen_alpha: float = _setting(0.9, "learning", "α, weight of the log-policy", source=MUNCHAUSEN, least=0, most=1, only=("munchausen", "True"))
    munchausen_temperature: float = _setting(0.03, "learning", "τ, temperature of the softmax policy", source=MUNCHAUSEN, least=1e-6, only=("munchausen", "True"))
    munchausen_clip: float = _setting(-1.0, "learning", "l₀, lower bound of τ log π", source=MUNCHAUSEN, most=0, only=("munchausen", "True"))
    batch_size: int = _setting(32, "learning", "number of transitions per update", source=NATURE, least=1)
    optimizer: str = _setting("adam", "learning", "Adam, or the centered RMSProp of DQN with decay 0.95", source=QR, choices=("adam", "rmsprop"))
    learning_rate: float = _setting(5e-5, "learning", "learning rate of the optimizer", source=QR, least=0)
    adam_epsilon: float = _setting(0.01 / 32, "learning", "ε of Adam", source=QR, least=1e-10, only=("optimizer", "adam"))
    rmsprop_epsilon: float = _setting(0.01 / 32**2, "learning", "ε of RMSProp, inside the square root", source=NATURE, least=1e-12, only=("optimizer", "rmsprop"))
    fraction_rate: float = _setting(2.5e-9, "learning", "learning rate of FQF's fraction proposal network", source=FQF, least=0, only=("head", "fractions"))
    gradient_clip: float = _setting(0.0, "learning", "maximum norm of the gradient; 0 disables clipping", source=PAPER, least=0)
    train_frequency: int = _setting(4, "learning", "number of steps between two updates", unit="steps", source=NATURE, least=1)
    target_update_interval: int = _setting(10_000, "learning", "number of steps between two updates of the target network", unit="steps", source=NATURE, least=1)
    learning_starts: int = _setting(50_000, "learning", "number of steps to collect before the first update", unit="steps", source=NATURE, least=1)

    replay: str = _setting("uniform", "replay", "how transitions are sampled from the replay buffer", choices=("uniform", "prioritized"))
    priority_exponent: float = _setting(0.6, "replay", "α, exponent of the priorities; 0 is uniform sampling", source=PRIORITIZED, least=0, most=1, only=("replay", "prioritized"))
    importance_start: float = _setting(0.4, "replay", "initial β, exponent of the importance weights; 1 corrects the sampling bias fully", source=PRIORITIZED, least=0, most=1, only=("replay", "prioritized"))
    importance_steps: int = _setting(50_000_000, "replay", "number of steps over which β increases to 1; by default the length of the run when it starts", unit="steps", source=PRIORITIZED, least=0, only=("replay", "prioritized"))
    buffer_size: int = _setting(1_000_000, "replay", "capacity of the replay buffer, over all environments", unit="steps", source=NATURE, least=16)

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

    def __post_init__(self) -> None:
        for name, about in ABOUT.items():
            _check(name, about, getattr(self, name))
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
        if self.munchausen and (self.double or self.n_step > 1):
            raise QuantailError(
                f"munchausen takes double no and n_step 1, not double {'yes' if self.double else 'no'} "
                f"and n_step {self.n_step}: its target averages over all actions, so none is selected, "
                "and each reward needs the log-policy of its own state."
            )

    def is_active(self, name: str) -> bool:
        """Return whether a setting has an effect, given the other settings."""
        only = ABOUT[name].only
        return not only or str(getattr(self, only[0])) in only[1:]

    @property
    def total_envs(self) -> int:
        """The number of environments over all actors."""
        return self.num_envs * (self.actors if self.engine == "ray" else 1)

    def risks(self) -> tuple[str, ...]:
        """Return the texts of all settings that name a risk measure."""
        return tuple(getattr(self, name) for name in RISKS)

    def played_risk(self) -> str:
        """Return the risk measure of evaluation and of the trained agent."""
        return self.evaluation_risk or self.risk

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON or TOML."""
        values = dataclasses.asdict(self)
        values["mlp_sizes"] = list(self.mlp_sizes)
        return values

    def with_changes(self, changes: Mapping[str, Any]) -> "Settings":
        """Return a copy with some settings changed; raise an error for unknown names and wrong types."""
        return dataclasses.replace(self, **{k: coerce(k, v) for k, v in changes.items()})


RISKS = ("risk", "behaviour_risk", "target_risk", "evaluation_risk")  # settings that name a measure
ABOUT: dict[str, About] = {f.name: f.metadata["about"] for f in dataclasses.fields(Settings)}
DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Settings)}


def coerce(name: str, value: Any) -> Any:
    """Convert a value from Python, JSON, TOML or a flag to the type of the setting."""
    if name not in DEFAULTS:
        raise QuantailError(f"unknown setting {name!r}.{did_you_mean(name, DEFAULTS)}")
    kind = type(DEFAULTS[name])
    try:
        if kind is tuple:
            return tuple(_whole(v) for v in _items(value))
        if kind is bool:
            return _truth(value)
        if kind is int:
            return _whole(value)
        if kind is float:
            if isinstance(value, bool):
                raise ValueError
            return float(value)
    except (TypeError, ValueError, OverflowError):
        raise QuantailError(f"{name} takes {_takes(name)}, not {value!r}.") from None
    return str(value)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, str):
        return value.replace(",", " ").split()
    return [value] if isinstance(value, int) else list(value)


def _whole(value: Any) -> int:
    if isinstance(value, str):
        plain = value.replace("_", "")
        value = int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    if isinstance(value, bool) or value != int(value):
        raise ValueError
    return int(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError
    return words[str(value).lower()]


def _takes(name: str) -> str:
    about, kind = ABOUT[name], type(DEFAULTS[name])
    if about.choices:
        return " or ".join([", ".join(about.choices[:-1]), about.choices[-1]])
    words = {
        int: "a whole number",
        float: "a number",
        bool: "true or false",
        tuple: "whole numbers such as 128,128",
        str: "a text",
    }[kind]
    if about.least > -math.inf and about.most < math.inf:
        return f"{words} from {about.least:g} to {about.most:g}"
    if about.most < math.inf:
        return f"{words} of at most {about.most:g}"
    return f"{words} of at least {about.least:g}" if about.least > -math.inf else words


def _check(name: str, about: About, value: Any) -> None:
    valid = True
    if about.choices:
        valid = value in about.choices
    elif isinstance(value, tuple):
        valid = len(value) > 0 and all(v >= about.least for v in value)
    elif isinstance(value, int | float):
        valid = about.least <= value <= about.most and math.isfinite(value)
    if not valid:
        guess = did_you_mean(value, about.choices) if isinstance(value, str) else ""
        raise QuantailError(f"{name} takes {_takes(name)}, not {value!r}.{guess}")


def only_with(name: str) -> str:
    """Describe when a setting is active, such as "only with head implicit"; "" if it always is."""
    part, *values = ABOUT[name].only or ("",)
    if not part:
        return ""
    return f"only with {part}" if values == ["True"] else f"only with {part} {' or '.join(values)}"


def unit_and_source(name: str, sources: Mapping[str, str]) -> str:
    """Return the unit of a setting and the source of its value."""
    about = ABOUT[name]
    return "; ".join(part for part in (about.unit, sources.get(name, about.source)) if part)


def to_toml(settings: Settings, title: str, sources: Mapping[str, str]) -> str:
    """Return the active settings as a commented TOML file, which `--preset FILE` reads back."""
    lines, group = [f"# {title}"], ""
    for name, about in ABOUT.items():
        if not settings.is_active(name):
            continue
        if about.group != group:
            group = about.group
            lines += ["", f"# {group}"]
        note = unit_and_source(name, sources)
        lines.append(f"{name} = {_toml_value(getattr(settings, name))}  # {about.help} ({note})")
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(str(v) for v in value) + "]"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return repr(value)


def read_toml(path: Path) -> dict[str, Any]:
    """Read the settings from a TOML file."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QuantailError(f"preset {path} cannot be read: {error}") from error
    for name, value in values.items():
        if isinstance(value, dict):
            raise QuantailError(
                f"preset {path}: put settings at the top level, not in a table [{name}]."
            )
    return {name: coerce(name, value) for name, value in values.items()}


def shown(value: Any) -> str:
    """Format the value of a setting for display."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

"""Every setting of a run, in one place: its meaning, its unit and where its value comes from.

The defaults are the paper's; a preset (see `recipes.py`) differs from them only in what it names.
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
APEX = "Ape-X, Horgan et al. 2018"
OURS = "ours"


@dataclass(frozen=True)
class About:
    """What a user is told of a setting, and what it may be."""

    group: str
    help: str
    unit: str = ""
    source: str = OURS
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    only: tuple[str, ...] = ()  # another setting, and the values of it with which this one counts


def _setting(default: Any, group: str, help: str, **about: Any) -> Any:
    return dataclasses.field(default=default, metadata={"about": About(group, help, **about)})


@dataclass(frozen=True)
class Settings:
    """A run's settings. A *step* is one decision of the agent; a *frame* is one of the emulator's."""

    # fmt: off
    agent: str = _setting("iqn", "run", "which agent (see `quantail agents`)")
    risk: str = _setting("neutral", "run", "risk measure of behaviour, target and evaluation (see `quantail risks`)", source=PAPER)
    steps: int = _setting(50_000_000, "run", "length of the run, over all environments", unit="steps", source=PAPER, least=1)
    seed: int = _setting(0, "run", "the one seed from which every generator grows", least=0)
    envs: int = _setting(1, "run", "copies of the environment, stepped with one forward pass", least=1)
    engine: str = _setting("local", "run", "who plays: this process, or actors on Ray, with weights a little old (not repeatable bit for bit)", choices=("local", "ray"))
    actors: int = _setting(4, "run", "processes that play, each with `envs` copies of the environment", source=OURS, least=1, only=("engine", "ray"))
    device: str = _setting("auto", "run", "where networks live; auto is cuda or mps where there is one", choices=("auto", "cpu", "cuda", "mps"))
    threads: int = _setting(0, "run", "threads of the CPU for tensors; 0 leaves torch's choice", least=0)

    precision: str = _setting("float32", "run", "numbers in the matrix products of an update: tf32 or bfloat16 on GPUs that have them (slow on most CPUs); targets and losses stay float32", choices=("float32", "tf32", "bfloat16"))
    compile: bool = _setting(False, "run", "let torch.compile fuse an update; on a CPU it loses at Atari's size (see docs/performance.md)")

    behaviour_risk: str = _setting("", "risk", "measure of the actions taken in training; the run's `risk` if empty")
    target_risk: str = _setting("", "risk", "measure that chooses a* of the target; the run's `risk` if empty")
    evaluation_risk: str = _setting("", "risk", "measure of evaluation, and of the trained agent; the run's `risk` if empty")
    risk_steps: int = _setting(0, "risk", "η of behaviour and target goes from where the measure is neutral to its own value, after learn_start; 0 is at once", unit="steps", least=0)

    stack: int = _setting(1, "environment", "newest observations that the agent sees together", unit="observations", least=1)
    max_episode_steps: int = _setting(0, "environment", "truncate episodes after so many; 0 keeps the environment's own limit", unit="steps", least=0)
    clip_rewards: float = _setting(0.0, "environment", "bound on rewards for learning only, scores stay raw; 0 is off", least=0)
    action_repeat: int = _setting(1, "environment", "ALE: frames for which an action is held", unit="frames", least=1)
    no_ops: int = _setting(0, "environment", "ALE: most no-op actions at the start of a game, drawn uniformly", unit="frames", least=0)
    sticky: float = _setting(0.0, "environment", "ALE: chance at each frame that the last action stays", source="Machado et al. 2018", least=0, most=1)
    resize: str = _setting("bilinear", "environment", "ALE: how a screen is shrunk to 84×84; area is that of Dopamine and of the original DQN", source="DQN Zoo, Quan and Ostrovski 2020", choices=("bilinear", "area"))
    life_loss_ends: bool = _setting(False, "environment", "ALE: a lost life ends the bootstrap, never the game")

    head: str = _setting("implicit", "network", "how the law of the return is represented", choices=("expected", "categorical", "quantiles", "implicit", "fractions"))
    dueling: bool = _setting(False, "network", "separate streams for the state's value and the actions' advantages", source="Wang et al. 2016")
    noisy: bool = _setting(False, "network", "learned noise on the head's weights, in place of ε", source=NOISY)
    noisy_sigma: float = _setting(0.5, "network", "σ₀, noise at the start", source=NOISY, least=0.0001, only=("noisy", "True"))
    atoms: int = _setting(51, "network", "atoms of the categorical law", source=C51, least=2, only=("head", "categorical"))
    value_min: float = _setting(-10.0, "network", "least return that the categorical law can hold", source=C51, only=("head", "categorical"))
    value_max: float = _setting(10.0, "network", "largest return that the categorical law can hold", source=C51, only=("head", "categorical"))
    quantiles: int = _setting(200, "network", "fixed quantiles, or learned fractions", source=QR, least=1, only=("head", "quantiles", "fractions"))
    torso: str = _setting("auto", "network", "ψ; auto follows the observation", choices=("auto", "nature", "minatar", "mlp"))
    mlp_sizes: tuple[int, ...] = _setting((128,), "network", "layers of the mlp torso", unit="units", least=1)
    head_size: int = _setting(512, "network", "hidden layer of f", unit="units", source=NATURE, least=1)
    embedding: str = _setting("cosine", "network", "φ, the embedding of τ", source=PAPER, choices=("cosine", "mlp", "linear"), only=("head", "implicit", "fractions"))
    embedding_size: int = _setting(64, "network", "cosines, or hidden units of the mlp embedding", source=PAPER, least=1, only=("head", "implicit", "fractions"))
    embedding_activation: str = _setting("relu", "network", "what follows φ", source=PAPER, choices=("relu", "sigmoid"), only=("head", "implicit", "fractions"))
    merge: str = _setting("multiply", "network", "how ψ and φ meet: ψφ, [ψ, φ] or ψ(1 + φ)", source=PAPER, choices=("multiply", "concatenate", "residual"), only=("head", "implicit", "fractions"))

    online_samples: int = _setting(64, "learning", "N, levels τ of the prediction", source=PAPER, least=1, only=("head", "implicit"))
    target_samples: int = _setting(64, "learning", "N′, levels τ′ of the target", source=PAPER, least=1, only=("head", "implicit"))
    policy_samples: int = _setting(32, "learning", "K, levels that choose an action", source=PAPER, least=1, only=("head", "implicit"))
    tau: str = _setting("independent", "learning", "how levels are drawn: each by itself, one from each interval of 1/N, in pairs τ and 1 − τ, or the same for a whole batch", source=PAPER, choices=("independent", "stratified", "antithetic", "shared"), only=("head", "implicit"))
    kappa: float = _setting(1.0, "learning", "κ, where the Huber loss turns linear; 0 is the plain loss of a quantile", source=QR, least=0, only=("head", "expected", "quantiles", "implicit", "fractions"))
    discount: float = _setting(0.99, "learning", "γ, a step's discount", source=NATURE, least=0, most=1)
    n_step: int = _setting(1, "learning", "rewards summed before the bootstrap", unit="steps", source=PAPER, least=1)
    double: bool = _setting(False, "learning", "the online network chooses the target's action", source="van Hasselt et al. 2016")
    munchausen: bool = _setting(False, "learning", "add the clipped log-policy to the reward, and a soft next value", source=MUNCHAUSEN)
    munchausen_alpha: float = _setting(0.9, "learning", "α, share of the log-policy", source=MUNCHAUSEN, least=0, most=1, only=("munchausen", "True"))
    munchausen_temperature: float = _setting(0.03, "learning", "τ, temperature of the policy", source=MUNCHAUSEN, least=1e-6, only=("munchausen", "True"))
    munchausen_clip: float = _setting(-1.0, "learning", "l₀, least value of τ log π", source=MUNCHAUSEN, most=0, only=("munchausen", "True"))
    batch_size: int = _setting(32, "learning", "transitions of an update", source=NATURE, least=1)
    optimizer: str = _setting("adam", "learning", "adam, or DQN's centered RMSProp with decay 0.95", source=QR, choices=("adam", "rmsprop"))
    learning_rate: float = _setting(5e-5, "learning", "the optimizer's rate", source=QR, least=0)
    adam_epsilon: float = _setting(0.01 / 32, "learning", "Adam's epsilon", source=QR, least=1e-10, only=("optimizer", "adam"))
    rmsprop_epsilon: float = _setting(0.01 / 32**2, "learning", "RMSProp's epsilon, inside the root", source=NATURE, least=1e-12, only=("optimizer", "rmsprop"))
    fraction_rate: float = _setting(2.5e-9, "learning", "rate of FQF's fraction network", source=FQF, least=0, only=("head", "fractions"))
    gradient_clip: float = _setting(0.0, "learning", "largest norm of the gradient; 0 is off", source=PAPER, least=0)
    update_every: int = _setting(4, "learning", "from one update to the next", unit="steps", source=NATURE, least=1)
    target_every: int = _setting(10_000, "learning", "from one copy into the target network to the next", unit="steps", source=NATURE, least=1)
    learn_start: int = _setting(50_000, "learning", "before the first update", unit="steps", source=NATURE, least=1)

    replay: str = _setting("uniform", "replay", "how transitions are drawn", choices=("uniform", "prioritized"))
    priority_exponent: float = _setting(0.6, "replay", "α, how much priorities count; 0 is uniform", source=PRIORITIZED, least=0, most=1, only=("replay", "prioritized"))
    importance_start: float = _setting(0.4, "replay", "β at the start, how much of the bias is corrected", source=PRIORITIZED, least=0, most=1, only=("replay", "prioritized"))
    importance_steps: int = _setting(50_000_000, "replay", "until β is 1; unless given, the steps with which the run begins", unit="steps", source=PRIORITIZED, least=0, only=("replay", "prioritized"))
    replay_capacity: int = _setting(1_000_000, "replay", "places for transitions, over all environments", unit="steps", source=NATURE, least=16)

    epsilon_start: float = _setting(1.0, "acting", "chance of a random action at the start", source=NATURE, least=0, most=1, only=("engine", "local"))
    epsilon_end: float = _setting(0.01, "acting", "chance of a random action in the end", source=QR, least=0, most=1, only=("engine", "local"))
    epsilon_steps: int = _setting(1_000_000, "acting", "from start to end, after learn_start", unit="steps", source=QR, least=0, only=("engine", "local"))
    actor_epsilon: float = _setting(0.4, "acting", "ε of the actor that explores most, once learning has begun", source=APEX, least=0, most=1, only=("engine", "ray"))
    actor_epsilon_power: float = _setting(7.0, "acting", "α, how much less the others explore: ε^(1 + α i/(actors − 1))", source=APEX, least=0, only=("engine", "ray"))
    evaluation_epsilon: float = _setting(0.001, "acting", "chance of a random action in evaluation", source=QR, least=0, most=1)

    evaluation_every: int = _setting(250_000, "evaluation", "from one evaluation to the next", unit="steps", source=PAPER, least=1)
    evaluation_episodes: int = _setting(30, "evaluation", "episodes of an evaluation, where evaluation_steps is 0", unit="episodes", least=1)
    evaluation_steps: int = _setting(0, "evaluation", "whole episodes within so many; 0 counts episodes instead", unit="steps", least=0)

    log_every: int = _setting(10_000, "files", "from one row of metrics.csv to the next", unit="steps", least=1)
    checkpoint_every: int = _setting(50_000, "files", "from one checkpoint to the next", unit="steps", least=1)
    tensorboard: bool = _setting(False, "files", "write TensorBoard events too")
    wandb: str = _setting("", "files", "project of Weights & Biases to write to, too; none if empty")
    # fmt: on

    def __post_init__(self) -> None:
        for name, about in ABOUT.items():
            _check(name, about, getattr(self, name))
        if self.learn_start > self.steps:
            raise QuantailError(
                f"steps {self.steps:,} end before learning begins: "
                f"raise steps or lower learn_start, which is {self.learn_start:,}."
            )
        if self.learn_start <= self.n_step * self.lanes:
            raise QuantailError(
                f"learn_start {self.learn_start} comes before the first n-step return is known: "
                f"with n_step {self.n_step} and {self.lanes} environments it takes more than "
                f"{self.n_step * self.lanes}."
            )
        if self.replay_capacity // self.lanes < self.stack + self.n_step + 1:
            raise QuantailError(
                f"replay_capacity {self.replay_capacity} leaves {self.replay_capacity // self.lanes} "
                f"places for each of {self.lanes} environments: "
                f"stack and n_step need at least {self.stack + self.n_step + 1}."
            )
        if self.head == "categorical" and self.value_min >= self.value_max:
            raise QuantailError(
                f"value_min {self.value_min:g} is not below value_max {self.value_max:g}: "
                "the atoms of the law lie between them."
            )
        if self.head == "expected" and self.kappa == 0:
            raise QuantailError(
                "kappa 0 would learn the median: with head expected it takes more than 0."
            )
        if self.head == "fractions" and self.quantiles < 2:
            raise QuantailError(
                "quantiles 1 leaves no fraction to learn: head fractions takes at least 2."
            )
        if self.munchausen and (self.double or self.n_step > 1):
            raise QuantailError(
                f"munchausen takes double no and n_step 1, not double {'yes' if self.double else 'no'} "
                f"and n_step {self.n_step}: its target averages over all actions, so none is chosen, "
                "and each reward needs the log-policy of its own state."
            )

    def counts(self, name: str) -> bool:
        """Whether a setting has any effect beside the others."""
        only = ABOUT[name].only
        return not only or str(getattr(self, only[0])) in only[1:]

    @property
    def lanes(self) -> int:
        """Environments in all."""
        return self.envs * (self.actors if self.engine == "ray" else 1)

    def risks(self) -> tuple[str, ...]:
        """Every measure that the settings name."""
        return tuple(getattr(self, name) for name in RISKS)

    def played_risk(self) -> str:
        """The measure of evaluation and of the trained agent."""
        return self.evaluation_risk or self.risk

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON or TOML."""
        values = dataclasses.asdict(self)
        values["mlp_sizes"] = list(self.mlp_sizes)
        return values

    def with_changes(self, changes: Mapping[str, Any]) -> "Settings":
        """These settings with some of them changed; unknown names and wrong types are refused."""
        return dataclasses.replace(self, **{k: coerce(k, v) for k, v in changes.items()})


RISKS = ("risk", "behaviour_risk", "target_risk", "evaluation_risk")  # settings that name a measure
ABOUT: dict[str, About] = {f.name: f.metadata["about"] for f in dataclasses.fields(Settings)}
DEFAULTS: dict[str, Any] = {f.name: f.default for f in dataclasses.fields(Settings)}


def coerce(name: str, value: Any) -> Any:
    """A value from Python, JSON, TOML or a flag as the setting's own type."""
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
    """With what a setting counts, in words; empty where it always does."""
    part, *values = ABOUT[name].only or ("",)
    if not part:
        return ""
    return f"only with {part}" if values == ["True"] else f"only with {part} {' or '.join(values)}"


def unit_and_source(name: str, sources: Mapping[str, str]) -> str:
    """What stands behind a value: its unit, and where it comes from."""
    about = ABOUT[name]
    return "; ".join(part for part in (about.unit, sources.get(name, about.source)) if part)


def to_toml(settings: Settings, title: str, sources: Mapping[str, str]) -> str:
    """The settings that count as a commented TOML file that `--preset FILE` reads back."""
    lines, group = [f"# {title}"], ""
    for name, about in ABOUT.items():
        if not settings.counts(name):
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
    """The settings that a TOML file names."""
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
    """A setting's value as a person reads it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)

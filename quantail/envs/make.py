"""Make environments for agents from an id or a function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit

from quantail.envs import atari, minatar
from quantail.envs.adapt import Adapter, Env
from quantail.errors import QuantailError, did_you_mean
from quantail.extras import require_extra
from quantail.recipes import compose
from quantail.registration import register
from quantail.settings import Settings
from quantail.spaces import ActionSpec, ObservationSpec
from quantail.trust import Origin, import_named


@dataclass(frozen=True)
class EnvFromFile:
    """An environment that a file names as `module:id` and whose module the user does not trust.

    It can be made only if its id is already registered, so that nothing needs to be imported.
    """

    name: str
    origin: Origin


EnvSource = str | Callable[[], Env] | EnvFromFile
Kind = Literal["atari", "minatar", "world", "other"]

ALE = ("ALE/", "NoFrameskip-v")  # parts of the ids of ALE games
FUNCTION = "function "  # prefix of the name of an environment that a function makes
ATARI_ONLY = ("action_repeat", "no_ops", "sticky", "resize", "life_loss_ends")


def make(
    source: EnvSource,
    settings: Settings | None = None,
    render_mode: str | None = None,
    *,
    all_actions: bool = False,
) -> Adapter:
    """Make an environment with the preprocessing of the settings, or of its preset by default.

    Its observations can be passed to `agent.act`, and the actions of `agent.act` to its `step`.
    `all_actions` gives an ALE game all 18 actions of the console.
    """
    settings = settings or compose(default_preset(source), {})
    name, kind = name_of(source), kind_of(source)
    if kind == "atari":
        env = _make_atari(source, settings, render_mode, all_actions)
    else:
        _refuse_atari_settings(name, settings)
        if kind == "minatar":
            require_extra("minatar", name)
        env = _make_any(source, name, settings, render_mode)
        if kind == "minatar":
            env = minatar.MinAtarEpisode(env)
    if settings.max_episode_steps and (kind == "atari" or callable(source)):
        env = TimeLimit(env, settings.max_episode_steps)
    return Adapter(env, settings.stack, name)


def kind_of(source: EnvSource) -> Kind:
    """Return the family of an environment; raise an error for an unknown id."""
    if isinstance(source, gym.Env):
        raise QuantailError(
            "env takes an id or a function that makes an environment, such as lambda: MyEnv(), "
            f"not an environment ({type(source.unwrapped).__name__})."
        )
    if callable(source):
        return "other"
    if _is_ale(name_of(source)) and not atari.register():
        return "atari"  # known by its id alone; making it names the missing extra
    entry = str(_find(source).entry_point)
    if entry.startswith("ale_py.env"):
        return "atari"
    if entry.startswith("quantail.envs.worlds"):
        return "world"
    return "minatar" if entry.startswith("minatar.gym") else "other"


def default_preset(source: EnvSource) -> str:
    """Return the default preset of the family of an environment."""
    presets = {"atari": "atari-paper", "minatar": "minatar", "world": "worlds", "other": "small"}
    return presets[kind_of(source)]


def env_from_file(name: str, origin: Origin) -> EnvSource:
    """Return the source of an environment that a file names; untrusted modules are not imported."""
    module = name.rpartition(":")[0]
    return name if not module or origin.allows(module) else EnvFromFile(name, origin)


def name_of(source: EnvSource) -> str:
    """Return the name of an environment in files and messages."""
    if isinstance(source, str):
        return source
    if isinstance(source, EnvFromFile):
        return source.name
    module = getattr(source, "__module__", "")
    return f"{FUNCTION}{module}.{getattr(source, '__qualname__', type(source).__name__)}"


def require_fresh(source: EnvSource) -> None:
    """Raise an error if a function returns the same environment twice instead of new ones."""
    if callable(source):
        first, second = source(), source()
        if first.unwrapped is second.unwrapped:
            raise QuantailError(
                f"{name_of(source)} must make a new environment at each call, "
                "but it returned the same one twice."
            )
        first.close()
        second.close()


def specs_of(env: Adapter) -> tuple[ObservationSpec, ActionSpec]:
    """Return the observation and action specs of an environment."""
    return env.spec_of_observation, env.actions


def _find(source: EnvSource) -> EnvSpec:
    name = name_of(source)
    atari.register()
    minatar.register()
    register()
    if name.startswith(FUNCTION):
        raise QuantailError(
            f"this run's environment was made by a {name}: pass it again as env=... in Python."
        )
    module, _, identifier = name.rpartition(":")
    if isinstance(source, EnvFromFile):
        if identifier not in gym.registry:
            source.origin.require(module)
    elif module:
        _import(module, name)
    spec = gym.registry.get(identifier)
    if spec is None:
        if _is_ale(name):
            require_extra("atari", name)
        raise QuantailError(
            f"unknown environment {name!r}: it takes the id of a Gymnasium environment, "
            "or module:id for one that your own module registers."
            f"{_nearest(module, identifier)}"
        )
    return spec


def _is_ale(name: str) -> bool:
    """Return whether an id is that of an ALE game, whether or not ale-py is installed."""
    return ":" not in name and any(part in name for part in ALE)


def _nearest(module: str, identifier: str) -> str:
    guess = did_you_mean(identifier, gym.registry)
    return guess.replace("'", f"'{module}:", 1) if module else guess


def _import(module: str, name: str) -> None:
    try:
        import_named(module, None)
    except Exception as error:
        raise QuantailError(
            f"environment {name!r}: the module {module!r} cannot be imported ({error}). "
            "The working folder and PYTHONPATH were searched."
        ) from error


def atari_game(source: EnvSource) -> tuple[str, dict[str, int | None]]:
    """Return the ALE game of an id, and its mode and difficulty (None for the default)."""
    options = _find(source).kwargs
    return options["game"], {name: options.get(name) for name in ("mode", "difficulty")}


def _make_atari(
    source: EnvSource, settings: Settings, render_mode: str | None, all_actions: bool
) -> Env:
    game, options = atari_game(source)
    return atari.AtariGame(
        game,
        action_repeat=settings.action_repeat,
        no_ops=settings.no_ops,
        sticky=settings.sticky,
        resize=settings.resize,
        mode=options["mode"],
        difficulty=options["difficulty"],
        all_actions=all_actions,
        render_mode=render_mode,
    )


def _make_any(source: EnvSource, name: str, settings: Settings, render_mode: str | None) -> Env:
    # Not every environment takes a render mode.
    options: dict[str, Any] = {"render_mode": render_mode} if render_mode else {}
    limit = settings.max_episode_steps or None  # None keeps the environment's own limit
    try:
        if callable(source):
            env = source()
        else:
            # A trusted module is already imported; gym.make("module:id") would import any module.
            identifier = name.rpartition(":")[2]
            return gym.make(identifier, max_episode_steps=limit, disable_env_checker=True, **options)
    except Exception as error:
        raise QuantailError(f"{name} cannot be made: {error}") from error
    if not isinstance(env, gym.Env):
        raise QuantailError(f"{name} returned {type(env).__name__}, not a Gymnasium environment.")
    return env


def _refuse_atari_settings(name: str, settings: Settings) -> None:
    plain: dict[str, Any] = Settings().to_dict()
    for setting in ATARI_ONLY:
        if getattr(settings, setting) != plain[setting]:
            raise QuantailError(
                f"{setting} {getattr(settings, setting)} is for ALE games only, and {name} is not one: "
                "choose another preset or remove the setting."
            )

"""The families of environments by name, and the family of an environment."""

from typing import Any

import gymnasium as gym

from quantail import registry
from quantail.envs.ale import Ale
from quantail.envs.config import EnvironmentConfig
from quantail.envs.family import EnvFamily
from quantail.envs.gymnasium import Gymnasium
from quantail.envs.minatar import MinAtar
from quantail.envs.source import FUNCTION, EnvFromFile, EnvSource, name_of
from quantail.envs.worlds.family import Worlds
from quantail.errors import QuantailError, did_you_mean, reason_of
from quantail.trust import Origin, import_named

FALLBACK = "gymnasium"
FAMILIES: dict[str, type[EnvFamily]] = {
    "ale": Ale,
    "minatar": MinAtar,
    "worlds": Worlds,
    FALLBACK: Gymnasium,  # for ids that no other family recognises
}


def find_family(source: EnvSource, config: EnvironmentConfig | None = None) -> EnvFamily:
    """Return the family of an environment, with its settings; raise an error for an unknown id."""
    family, _ = locate(source)
    return family if config is None else configured(family, config)


def fallback_family(config: EnvironmentConfig) -> EnvFamily:
    """Return the family of environments that functions make, with its settings."""
    return configured(_create(FALLBACK, Gymnasium), config)


def locate(source: EnvSource) -> tuple[EnvFamily, str]:
    """Return the family of an environment, and the id by which the family makes it.

    The id is the name without the module of `module:id`, which is imported if the user gave the name. A
    name that a family recognises as it is names no module. The fallback makes what functions return.
    """
    if isinstance(source, gym.Env):
        raise QuantailError(
            "env takes an id or a function that makes an environment, such as lambda: MyEnv(), "
            f"not an environment ({type(source.unwrapped).__name__})."
        )
    name = name_of(source)
    if callable(source):
        return _create(FALLBACK, Gymnasium), name
    if name.startswith(FUNCTION):
        raise QuantailError(
            f"this run's environment was made by a {name}: pass it again as env=... in Python."
        )
    if whole := _recognised(name):
        return whole, name
    module, _, identifier = name.rpartition(":")
    if module and isinstance(source, str):
        _import(module, name)
    found = _recognised(identifier) if module else None
    if found is None and identifier in gym.registry:
        found = _create(FALLBACK, Gymnasium)
    if found is None:
        if isinstance(source, EnvFromFile):
            source.origin.require(module)
        raise QuantailError(
            f"unknown environment {name!r}: it takes the id of a Gymnasium environment, "
            "or module:id for one that your own module registers."
            f"{_nearest(module, identifier)}"
        )
    return found, identifier


def all_families() -> list[EnvFamily]:
    """Return every family with its default settings, built-in ones first."""
    return [_create(name, family) for name, family in registry.parts("family").items()]


def configured(family: EnvFamily, config: EnvironmentConfig) -> EnvFamily:
    """Return a family with the settings of a configuration; with its defaults if that has another."""
    chosen = config.family
    same = chosen.name == registry.text_of("family", family.name) and chosen.is_loaded
    return family.configured(chosen.config) if same else family


def modules_of_env(name: str) -> frozenset[str]:
    """Return the module of `module:id`; none if a family recognises the name as it is."""
    module = name.rpartition(":")[0]
    return frozenset([module] if module and _recognised(name) is None else [])


def require_trusted_env(name: str, origin: Origin) -> None:
    """Raise an error if a file names an environment as `module:id` and the module is not trusted."""
    origin.require(*modules_of_env(name))


def _recognised(env: str) -> EnvFamily | None:
    """Return the family that recognises an id, besides the fallback."""
    families = [one for one in all_families() if one.name != FALLBACK]
    for family in families if env not in gym.registry else ():  # it may import a package of games
        _ask(family, "register_ids")
    found = [family for family in families if _ask(family, "recognises", env)]
    if len(found) > 1:
        names = " and ".join(family.name for family in found)
        raise QuantailError(f"{env!r} is recognised by the environment families {names}: use only one.")
    return found[0] if found else None


def _create(name: str, family: type[EnvFamily]) -> EnvFamily:
    try:
        created = family()
    except Exception as error:
        raise QuantailError(
            f"the environment family {name} cannot be created: {reason_of(error)}."
        ) from error
    created.name = name
    return created


def _ask(family: EnvFamily, question: str, *about: str) -> Any:
    try:
        return getattr(family, question)(*about)
    except Exception as error:
        of = "".join(f" for {one!r}" for one in about)
        raise QuantailError(
            f"the environment family {family.name} failed in {question}{of}: {reason_of(error)}."
        ) from error


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

"""What users and files give as an environment: an id, a function, or an id that a file names."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium as gym

from quantail.errors import QuantailError
from quantail.trust import Origin

Env = gym.Env[Any, Any]
FUNCTION = "function "  # prefix of the name of an environment that a function makes


@dataclass(frozen=True)
class EnvFromFile:
    """An environment that a file names as `module:id` and whose module the user does not trust.

    It can be made only if its id is already registered, so that nothing needs to be imported.
    """

    name: str
    origin: Origin


EnvSource = str | Callable[[], Env] | EnvFromFile


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

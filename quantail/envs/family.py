"""The base class of environment families: everything specific to a kind of environment."""

import copy
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import gymnasium as gym
import numpy as np

from quantail.distributions import ReturnDistribution
from quantail.envs.actions import action_spec
from quantail.envs.human import HumanPlay
from quantail.part_config import NoConfig, fields_of

Env = gym.Env[Any, Any]


class EnvFamily:
    """Base class of families of environments, such as the games of the ALE.

        class Corridors(quantail.EnvFamily):
            preset = "small"

            def recognises(self, env):
                return env.startswith("corridor:")

            def make(self, env, render_mode=None):
                return Corridor(length=int(env.removeprefix("corridor:")))

        quantail.register_family("corridors", Corridors)

    `recognises`, `make` and `preset` are enough; override the rest where your environments differ.
    `self.config` holds the family's own settings, an instance of `Config`. An environment that is
    passed to a method may be wrapped: `env.unwrapped` is your own.
    """

    Config: type = NoConfig
    name = ""  # under which the family is registered
    title = "environments of its own"  # in messages, in the plural
    preset = "small"  # the default preset of its environments
    extra = ""  # the extra of Quantail that its environments need
    human = HumanPlay()  # how a person plays its environments

    def __init__(self, config: Any = None) -> None:
        self.config = self.Config() if config is None else config

    def recognises(self, env: str) -> bool:
        """Return whether an id is one of this family. This must be fast: it is called for every id."""
        raise NotImplementedError

    def make(self, env: str, render_mode: str | None = None) -> Env:
        """Make the environment of an id; by default the one that is registered with Gymnasium."""
        # Not every environment takes a render mode.
        options: dict[str, Any] = {"render_mode": render_mode} if render_mode else {}
        return gym.make(env, disable_env_checker=True, **options)

    def register_ids(self) -> None:
        """Register ids with Gymnasium, if the family has such.

        It is called when an id is looked up that Gymnasium does not know.
        """

    def owns(self, env: Env) -> bool:
        """Return whether an environment that a user's function made is one of this family."""
        return False

    # Learning

    @property
    def frames_per_step(self) -> int:
        """The number of frames of the emulator that a step takes."""
        return 1

    def ends_return(self, terminated: bool, info: Mapping[str, Any]) -> bool:
        """Return whether the return ends at a step in learning, where the episode may go on."""
        return terminated

    def remarks(self) -> list[str]:
        """Return how the returns of learning differ from those of whole episodes, as phrases."""
        return []

    # Names

    def action_names(self, env: Env) -> Sequence[str]:
        """Return a name for each action, in order: the `action_names` of the environment, if any."""
        given = getattr(env.unwrapped, "action_names", None)
        if given is not None:
            return list(given)
        actions = action_spec(env.action_space, self.title)
        numbers = actions.to_env(np.arange(actions.count)).tolist()
        return [f"action {' '.join(map(str, one)) if actions.sizes else one}" for one in numbers]

    def legend(self, env: Env) -> str:
        """Return what the colours of the rendered image mean; "" if that is unknown."""
        return ""

    # Known return distributions

    def exact_returns(
        self, env: Env, policy: Callable[[Any], int], discount: float
    ) -> Mapping[Any, Sequence[ReturnDistribution]] | None:
        """Return the exact return distribution of every action at every observation, if they are known.

        They are those of taking the action and then following `policy`, which maps an observation to an
        action, counted from 0. None where the model of the environment is unknown.
        """
        return None

    # Randomness

    def reseed(self, env: Env, seed: int) -> None:
        """Reseed every generator of an environment in mid-episode."""
        env.unwrapped.np_random = np.random.default_rng(seed)

    def generator_states(self, env: Env) -> list[Any]:
        """Return the states of these generators, whose text differs once one of them was used."""
        return [env.unwrapped.np_random.bit_generator.state]

    # Protocols

    def conditions(self) -> dict[str, Any]:
        """Return the conditions of a protocol that the environment itself meets or sets.

        By default these are all settings of the family. Leave out those that do not change an episode.
        """
        usual = {"no_ops": 0, "sticky": 0.0, "action_repeat": self.frames_per_step}
        return usual | {one.name: getattr(self.config, one.name) for one in fields_of(type(self))}

    def refused(self, conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Return those conditions of a protocol that the family cannot meet: it has no such setting."""
        own = self.conditions()
        return {k: v for k, v in conditions.items() if not hasattr(self.config, k) and v != own.get(k)}

    def under(self, conditions: Mapping[str, Any]) -> Self:
        """Return the family with its settings changed to the conditions of a protocol."""
        own = {name: value for name, value in conditions.items() if hasattr(self.config, name)}
        return self.configured(dataclasses.replace(self.config, **own))

    def configured(self, config: Any) -> Self:
        """Return the family with other settings."""
        family = copy.copy(self)
        family.config = config
        return family

    # People

    def for_human(self) -> Self:
        """Return the family with the settings under which a person plays and games are recorded."""
        return self.configured(self.Config())

    def check(self) -> str:
        """Check for `quantail doctor` that an environment works; return what it found, in words."""
        return "registered"


def entry_point(env: str) -> str:
    """Return where Gymnasium finds the environment of an id, without importing it; "" if unknown."""
    spec = gym.registry.get(env)
    return str(spec.entry_point) if spec else ""

"""Environments as the agent sees them: Gymnasium's interface, one adapter for each family."""

from quantail.envs.make import EnvSource, default_preset, kind_of, make, specs_of

__all__ = ["EnvSource", "default_preset", "kind_of", "make", "specs_of"]

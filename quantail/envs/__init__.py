"""Environments as the agent sees them: Gymnasium's interface, one adapter for each family."""

from quantail.envs.make import EnvSource, kind_of, make, specs_of

__all__ = ["EnvSource", "kind_of", "make", "specs_of"]

"""Environments with Gymnasium's interface and the preprocessing that agents expect."""

from quantail.envs.make import EnvSource, default_preset, kind_of, make, specs_of

__all__ = ["EnvSource", "default_preset", "kind_of", "make", "specs_of"]

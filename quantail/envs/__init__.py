"""Environments with Gymnasium's interface and the preprocessing that agents expect."""

from quantail.envs.families import find_family
from quantail.envs.family import EnvFamily
from quantail.envs.make import make, specs_of
from quantail.envs.source import EnvSource

__all__ = ["EnvFamily", "EnvSource", "find_family", "make", "specs_of"]

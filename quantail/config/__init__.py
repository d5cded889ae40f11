"""The configuration of a run, in groups of settings that the packages own."""

from quantail.config.config import Config, require_config
from quantail.config.flat import (
    PARTS,
    RISKS,
    Changes,
    Flat,
    canonical,
    choices,
    coerce,
    flat_settings,
    flattened,
    is_dotted,
    is_setting,
    only_with,
    require_settings,
)

__all__ = [
    "PARTS",
    "RISKS",
    "Changes",
    "Config",
    "Flat",
    "canonical",
    "choices",
    "coerce",
    "flat_settings",
    "flattened",
    "is_dotted",
    "is_setting",
    "only_with",
    "require_config",
    "require_settings",
]

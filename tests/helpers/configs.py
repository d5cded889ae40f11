"""Configurations and networks from flat settings."""

from quantail import networks
from quantail.config import Config


def config(**settings):
    """Return the paper's configuration with these settings, where they apply."""
    return Config.fitting(settings)


def build_network(config, *arguments, **options):
    return networks.build_network(config.network, config.head, *arguments, **options)


def build_head(config, *arguments, **options):
    return networks.build_head(config.network, config.head, *arguments, **options)


def build_torso(config, observation):
    return networks.build_torso(config.network, observation)

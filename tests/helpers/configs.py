"""Configurations and networks from flat settings."""

import dataclasses

from quantail import networks
from quantail.config import Config


def config(**settings):
    """Return the paper's configuration with these settings, where they apply."""
    return Config.fitting(settings)


def labelled(config, preset):
    """Return a configuration under the name of another preset, to compare it with that one's."""
    return dataclasses.replace(config, run=dataclasses.replace(config.run, preset=str(preset)))


def build_network(config, *arguments, **options):
    return networks.build_network(config.network, config.head, *arguments, **options)


def build_head(config, *arguments, **options):
    return networks.build_head(config.network, config.head, *arguments, **options)


def build_torso(config, observation):
    return networks.build_torso(config.network, observation)

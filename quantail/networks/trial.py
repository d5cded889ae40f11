"""A trial of a network before its run starts: parts from outside may not fit together."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks.config import NetworkConfig
from quantail.networks.network import build_network
from quantail.parts import Part
from quantail.spaces import ObservationSpec, to_tensors
from quantail.taus import RandomTaus

BATCH = 3


class Trial(NamedTuple):
    """What a trial shows about a network."""

    metrics: tuple[str, ...]  # the names of those that the head reports
    kernels: str  # the compute path on a CPU: "numba" or "torch"


def try_network(
    config: NetworkConfig, head: Part, observation: ObservationSpec, num_actions: int
) -> Trial:
    """Raise an error if the torso and the head do not give a network that can be trained.

    Return what was learned about the network.
    """
    with _explained(f"the torso {config.torso.name} or the head {head.name} cannot be built"):
        network = build_network(config, head, observation, num_actions)
    observations = to_tensors(observation.zeros(BATCH))
    torso, of_head = f"torso {config.torso.name}", f"head {head.name}"
    with _explained(f"{torso} fails on observations {observation.describe()}"), _no_randomness(torso):
        features = network.features(observations)
    width = network.torso.num_features
    _require_shape(f"{torso} has num_features {width}, so its features", features, (BATCH, width))
    taus = RandomTaus(np.random.default_rng(0), network.head.tau_sampling)
    with _explained(f"{of_head} fails to give a distribution"), _no_randomness(of_head):
        atoms = network.head.distribution(features, taus).atoms
    _require_shape(f"{of_head}: the atoms", atoms, (BATCH, num_actions, atoms.shape[-1]))
    target = ReturnDistribution(torch.tensor([[-1.0, 2.0]]).expand(BATCH, 2))
    actions = torch.zeros(BATCH, dtype=torch.int64)
    with _explained(f"{of_head} fails to give a loss"), _no_randomness(of_head):
        output = network.head.loss(features, actions, target, taus)
    for name in ("losses", "priorities", "values"):
        _require_shape(f"{of_head}: the {name} of its loss", getattr(output, name), (BATCH,))
    for name, values in output.metrics.items():
        _require_shape(f"{of_head}: the metric {name}", values, (BATCH,))
    for name in network.head.optimizers():
        if name not in output.auxiliary:
            raise QuantailError(
                f"{of_head} has an optimizer {name!r}, but its loss has no auxiliary {name!r}."
            )
    return Trial(tuple(output.metrics), network.kernels)


@contextmanager
def _explained(what: str) -> Iterator[None]:
    """Turn an error in a part into one sentence."""
    try:
        yield
    except QuantailError:
        raise
    except Exception as error:
        message = " ".join(str(error).split())
        raise QuantailError(f"{what} ({type(error).__name__}: {message}).") from error


@contextmanager
def _no_randomness(part: str) -> Iterator[None]:
    """Raise an error if a part draws from a global random generator, which no run could resume."""
    before = _global_states()
    yield
    if _global_states() != before:
        raise QuantailError(
            f"{part} draws random numbers of its own: a run is the same for the same seed only if all "
            "come from the sampler `taus`."
        )


def _global_states() -> tuple[bytes, str, int]:
    torch_state: Tensor = torch.get_rng_state()
    return torch_state.numpy().tobytes(), str(np.random.get_state()), hash(random.getstate())


def _require_shape(what: str, found: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(found.shape) != shape:
        raise QuantailError(f"{what} must have the shape {shape}, not {tuple(found.shape)}.")

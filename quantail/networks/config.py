"""The settings of the network, besides those of its torso and head."""

from dataclasses import dataclass

from quantail.parts import Group, Part, part
from quantail.settings import NATURE, NOISY, OURS, setting


@dataclass(frozen=True)
class NetworkConfig(Group):
    """The torso, and the layers that every head is built from."""

    torso: Part = part(
        "torso",
        "auto",
        "network from observations to features; auto chooses it by the shape of observations",
        source=OURS,
    )
    dueling: bool = setting(
        False,
        "dueling network: separate streams for the state value and the advantages",
        source="Wang et al. 2016",
    )
    noisy: bool = setting(
        False, "noisy layers in the head for exploration, instead of random actions", source=NOISY
    )
    noisy_sigma: float = setting(
        0.5, "initial noise of noisy layers (sigma)", source=NOISY, least=0.0001, only=("noisy", "True")
    )
    kernels: str = setting(
        "auto",
        "compiled kernels: auto uses them where they are faster and numba is installed, torch never; "
        "results repeat bit for bit only with the same choice",
        source=OURS,
        choices=("auto", "torch"),
    )
    head_size: int = setting(
        512, "size of the hidden layer of the head", unit="units", source=NATURE, least=1
    )

"""`check_torso`: every check of a torso."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from quantail.errors import QuantailError
from quantail.networks.network import seeded
from quantail.networks.torsos import Torso
from quantail.spaces import (
    Array,
    LeafSpec,
    Observation,
    ObservationSpec,
    leaves_of,
    map_leaves,
    row_of,
    to_device,
    to_tensors,
)
from quantail.testing.common import NO_RANDOMNESS, answer, asking, close, kept_generators, require
from quantail.testing.forms import check_config, check_tensor
from quantail.testing.modules import (
    check_attributes,
    check_copies,
    check_device,
    check_start,
    randomise,
)

OBSERVATIONS = (
    ObservationSpec.array((5,), "float32", "vector"),
    ObservationSpec.array((4,), "float32", "vector", stack=3),
    ObservationSpec.array((6,), "float32", "one-hot"),
    ObservationSpec.array((7,), "uint8", "vector"),
    ObservationSpec.array((84, 84), "uint8", "hw", stack=4),
    ObservationSpec.array((10, 10, 4), "bool", "hwc"),
    ObservationSpec.array((44, 40, 3), "uint8", "hwc", stack=2),
    ObservationSpec.array((3, 40, 44), "float32", "chw"),
)
BATCH = 6


def check_torso(
    torso_class: type[Torso], observation: ObservationSpec | None = None, config: Any = None
) -> None:
    """Check that a torso keeps its contract; raise a `PartError` with one sentence if not.

    `observation` describes the observations that it is meant for. Without it, vectors and images of
    several kinds are tried; those that the torso refuses with a `QuantailError` are left out. `config`
    is an instance of the torso's `Config`; without it the defaults are used.

        from quantail.testing import check_torso
        from my_package import MyTorso
        check_torso(MyTorso)
    """
    with kept_generators():
        part = f"torso {getattr(torso_class, '__name__', repr(torso_class))}"
        require(
            isinstance(torso_class, type) and issubclass(torso_class, Torso),
            part,
            "does not inherit from Torso",
            "check_torso takes a subclass of quantail.networks.Torso, the class itself",
        )
        config = check_config(part, torso_class, config)
        tried = OBSERVATIONS if observation is None else (observation,)
        refusals = []
        for one in tried:
            case = TorsoCase(part, torso_class, one, config)
            with asking(part, f"a torso for {case.kind}"):
                try:
                    case.build()
                except QuantailError as refusal:
                    refusals.append(str(refusal))
                    continue
            case.check()
        require(
            len(refusals) < len(tried),
            part,
            f"refused all kinds of observation that were tried ({refusals[:1]})",
            "give check_torso the observation that it is meant for",
        )


@dataclass(frozen=True)
class TorsoCase:
    """A torso class for one kind of observation, and its checks."""

    part: str
    torso_class: type[Torso]
    observation: ObservationSpec
    config: Any

    @property
    def kind(self) -> str:
        """The observation in words."""
        return " and ".join(
            f"{path} " * bool(path) + _words(leaf) for path, leaf in self.observation.leaves.items()
        )

    def build(self, seed: int = 0) -> Torso:
        """Build the torso as a network does."""
        return seeded(lambda: self.torso_class(self.observation, self.config), seed)

    def random(self, seed: int = 0) -> Torso:
        """Build the torso with weights that are not at their start, where some may be zero."""
        torso = self.build(seed)
        randomise(torso, seed)
        return torso

    def observations(self, batch: int = BATCH, seed: int = 0) -> Observation:
        """Return random observations, [B, *input_shape] for every array."""
        generator = np.random.default_rng(seed)
        return to_tensors(
            map_leaves(lambda leaf: _random(leaf, batch, generator), self.observation.tree)
        )

    def check(self) -> None:
        """Run all checks."""
        with asking(self.part, f"features of {self.kind}"):
            check_attributes(self.part, self.build())
            check_start(self.part, self.build)
            self.check_declarations()
            for batch in (BATCH, 1):
                self.check_features(batch)
            self.check_rows()
            self.check_nonnegative()
            self.check_gradients()
            self.check_state()
        torso, x = self.random().to("meta"), to_device(self.observations(), torch.device("meta"))
        check_device(self.part, f"features of {self.kind}", lambda: torso(x))

    def check_declarations(self) -> None:
        """Check what a torso says about itself."""
        torso = self.build()
        size = getattr(torso, "num_features", None)
        require(
            type(size) is int and size > 0,
            self.part,
            f"has {size!r} as num_features",
            "its __init__ must set num_features to the number of features, an int",
        )
        require(
            type(torso.nonnegative) is bool,
            self.part,
            f"has {torso.nonnegative!r} as nonnegative",
            "it must be True or False",
        )

    def check_features(self, batch: int) -> None:
        """Check the form of the features, in training and under inference_mode."""
        torso, x = self.random(), self.observations(batch)
        question = f"features of {batch} {self.kind}"
        for mode in (torch.enable_grad, torch.inference_mode):
            with mode():
                given = map_leaves(torch.clone, x)
                leaves = leaves_of(given).values()
                found = answer(self.part, question, partial(torso, given), *leaves, rule=NO_RANDOMNESS)
            check_tensor(self.part, question, found, (batch, torso.num_features))

    def check_rows(self) -> None:
        """Check that the features of an observation do not depend on the others of the batch."""
        torso, x = self.random(), self.observations()
        together = torso(x)
        for rows, did in (([3, 0, 5, 1, 4, 2], "permuted"), ([2], "split"), ([0, 1, 2], "split")):
            require(
                close(torso(row_of(x, rows)), together[rows], 1e-4),
                self.part,
                f"gives an observation other features when the batch is {did}",
                "features must not depend on the other observations of the batch "
                "(is something normalised over the wrong axis?)",
            )

    def check_nonnegative(self) -> None:
        """Check that features are nonnegative if the torso says so, for several weights and inputs."""
        for seed in range(4):
            torso = self.random(seed)
            with torch.no_grad():
                least = float(torso(self.observations(32, seed)).min())
            require(
                least >= 0 or not torso.nonnegative,
                self.part,
                f"gave the feature {least:.4g} and says that it is nonnegative",
                "only a torso that ends in a ReLU may say so, because heads then skip zeros",
            )

    def check_gradients(self) -> None:
        """Check that every parameter is reached, whatever its weights are."""
        reached: dict[str, bool] = {}
        for seed in range(3):
            torso = self.random(seed)
            features = torso(self.observations(16, seed))
            weights = torch.rand(features.shape, generator=torch.Generator().manual_seed(seed))
            if features.requires_grad:  # a torso may have no parameters
                (weights * features).sum().backward()
            for name, parameter in torso.named_parameters():
                found = parameter.grad is not None and bool((parameter.grad != 0).any())
                require(
                    parameter.grad is None or parameter.grad.isfinite().all(),
                    self.part,
                    f"gives {name} a gradient that is not finite",
                    "all gradients must be finite",
                )
                reached[name] = reached.get(name, not parameter.requires_grad) or found
        for name, found in reached.items():
            require(
                found,
                self.part,
                f"gives {name} no gradient",
                "every parameter must be learned (is something detached, or never used?)",
            )

    def check_state(self) -> None:
        """Check that all state is in the state_dict."""
        x = self.observations()

        def ask(torso: Torso) -> list[Any]:
            with torch.no_grad():
                return [torso(x)]

        check_copies(self.part, self.random(), self.build(1), ask)


def _words(leaf: LeafSpec) -> str:
    stack = f" in stacks of {leaf.stack}" if leaf.stack > 1 else ""
    return f"{leaf.layout} observations {leaf.shape} of {leaf.dtype}{stack}"


def _random(leaf: LeafSpec, batch: int, generator: np.random.Generator) -> Array:
    """Return random arrays of this kind, [B, *input_shape]."""
    shape = (batch, *leaf.input_shape)
    drawn: Array
    if leaf.layout == "one-hot":
        drawn = np.eye(shape[-1])[generator.integers(0, shape[-1], shape[:-1])]
    elif np.dtype(leaf.dtype).kind == "f":
        drawn = generator.standard_normal(shape)
    else:
        drawn = generator.integers(0, 2 if leaf.dtype == "bool" else leaf.high + 1, shape)
    return drawn.astype(leaf.dtype)

"""The learner: the two networks, the optimizer, and one update."""

import copy
import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.errors import DIVERGED, QuantailError
from quantail.learning.config import LearnerConfig
from quantail.learning.optimizers import build_auxiliary, build_optimizer
from quantail.learning.parameter_group import ParameterGroup
from quantail.learning.targets import Target, check_masks
from quantail.networks import LossOutput, ReturnNetwork
from quantail.risk import RiskMeasure
from quantail.stateful import State
from quantail.taus import RandomTaus

METRIC = "metric."  # before the name of a head's metric in a checkpoint


@dataclass(frozen=True)
class LearningReport:
    """Means over the updates since the last report."""

    updates: int
    loss: float
    value: float  # mean predicted return of the actions taken
    metrics: Mapping[str, float] = field(default_factory=dict)  # of the head


class Learner:
    """Holds the online and target networks and improves the online one, an update at a time."""

    def __init__(
        self,
        network: ReturnNetwork,
        config: LearnerConfig,
        risk: RiskMeasure,
        taus: np.random.Generator,
        noise: np.random.Generator,
        device: torch.device,
    ) -> None:
        self.config = config
        self.risk = risk
        self.taus = RandomTaus(taus, network.head.tau_sampling)
        self.noise = noise
        self.device = device
        if device.type != "cpu":
            network.use_torch()
        self.online = network.to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        auxiliary = self.online.head.optimizers()
        apart = {id(one) for about in auxiliary.values() for one in about.parameters}
        main = [p for p in self.online.parameters() if id(p) not in apart]
        self.main = ParameterGroup(main, partial(build_optimizer, config))
        self.auxiliary = {
            name: ParameterGroup(about.parameters, partial(build_auxiliary, about, config.batch_size))
            for name, about in auxiliary.items()
        }
        self.compute_target: Target = config.target.build()
        self._target: Callable[[Batch], ReturnDistribution] = self._target_of
        self._loss: Callable[[Batch, ReturnDistribution], LossOutput] = self._loss_of
        self.updates = 0
        self._reset_sums()
        if config.compile:
            self._compile()

    def update(self, batch: Batch) -> Tensor:
        """Take one step of the optimizer on a batch (Algorithm 1), and return the priorities [B]."""
        check_masks(batch)  # before the move, so that no accelerator has to wait for the answer
        batch = batch.to(self.device)
        target = self.targets(batch)  # r + γ Z(x′, a*), [B, N′]
        output = self.losses(batch, target)  # of Z(x, a) against the target, [B]
        loss = total = (batch.weights * output.losses).mean()
        for name in self.auxiliary:
            total = total + (batch.weights * output.auxiliary[name]).mean()

        for group in self._groups():
            group.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        self.main.step(self.config.gradient_clip)
        for group in self.auxiliary.values():
            group.step()

        self.updates += 1
        self._count += 1
        self._loss_sum += loss.detach()
        self._value_sum += output.values.mean()
        for name, values in output.metrics.items():
            self._metric_sums[name] = self._metric_sums.get(name, 0) + values.detach().mean().to(
                self._sum_dtype
            )
        return output.priorities

    def targets(self, batch: Batch) -> ReturnDistribution:
        """Return the target distribution of each transition, on fresh τ and noise: [B, M′]."""
        self.target.draw_noise(self.noise)
        if self.compute_target.uses_online:
            self.online.draw_noise(self.noise)
        return self._target(batch)

    def losses(self, batch: Batch, target: ReturnDistribution) -> LossOutput:
        """Return the loss of each transition against its target, on fresh τ and noise."""
        self.online.draw_noise(self.noise)
        return self._loss(batch, target)

    @torch.no_grad()
    def _target_of(self, batch: Batch) -> ReturnDistribution:
        with self._arithmetic():
            return self.compute_target(batch, self.online, self.target, self.risk, self.taus)

    def _loss_of(self, batch: Batch, target: ReturnDistribution) -> LossOutput:
        with self._arithmetic():
            features = self.online.features(batch.observations)
            return self.online.head.loss(features, batch.actions, target, self.taus)

    def _arithmetic(self) -> AbstractContextManager[Any]:
        """Return the context of an update, in which products use the configured precision."""
        if self.config.precision != "bfloat16":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def sync_target(self) -> None:
        """Copy the online network into the target network."""
        self.target.load_state_dict(self.online.state_dict())

    def report(self) -> LearningReport:
        """Return means since the last report; raise an error if a loss or weight is not finite."""
        count = self._count
        loss = float(self._loss_sum) / count if count else math.nan
        value = float(self._value_sum) / count if count else math.nan
        metrics = {name: float(total) / count for name, total in self._metric_sums.items()}
        self.check_finite()
        self._reset_sums()
        return LearningReport(count, loss, value, metrics)

    def check_finite(self) -> None:
        """Raise if a loss since the last report, or any weight, is not finite.

        The update that breaks the weights has a finite loss: only the next one would show it.
        """
        if not math.isfinite(float(self._loss_sum)):
            raise QuantailError(f"the loss was not finite by update {self.updates}: {DIVERGED}")
        weights = [*self.online.state_dict().values(), *self.target.state_dict().values()]
        if not torch.stack([tensor.isfinite().all() for tensor in weights]).all():
            raise QuantailError(f"the weights were not finite by update {self.updates}: {DIVERGED}")

    def set_learning_rate(self, rate: float) -> None:
        """Use this learning rate from the next update on; a head's own optimizers keep theirs."""
        for group in self.main.optimizer.param_groups:
            group["lr"] = rate

    def state_dict(self) -> dict[str, NDArray[Any]]:
        """Return everything but the online network that the next update depends on."""
        return {name: tensor.cpu().numpy() for name, tensor in self._tensors().items()}

    def _tensors(self) -> dict[str, Tensor]:
        tensors = {f"target.{k}": v for k, v in self.target.state_dict().items()}
        for name, parameter in self.online.named_parameters():
            for key, value in self._group_of(parameter).state_of(parameter).items():
                tensors[f"optimizer.{name}.{key}"] = value
        tensors["sums"] = torch.stack([self._loss_sum, self._value_sum])
        tensors["counts"] = torch.tensor([self.updates, self._count])
        tensors |= {f"{METRIC}{name}": total for name, total in self._metric_sums.items()}
        return tensors

    def load_state_dict(self, state: State) -> None:
        """Restore what `state_dict` returned."""
        tensors = self._checked({name: torch.from_numpy(array) for name, array in state.items()})
        prefix = "target."
        self.target.load_state_dict(
            {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        )
        names = {parameter: f"optimizer.{k}." for k, parameter in self.online.named_parameters()}
        for group in self._groups():
            group.load_state(
                {
                    one: {
                        k.removeprefix(names[one]): v.to(self.device)
                        for k, v in tensors.items()
                        if k.startswith(names[one])
                    }
                    for one in group.parameters
                }
            )
        sums = tensors["sums"].to(self._sum_dtype).to(self.device)
        self._loss_sum, self._value_sum = (t.clone() for t in sums)
        self.updates, self._count = (int(n) for n in tensors["counts"])
        self._metric_sums.clear()
        self._metric_sums |= {
            name.removeprefix(METRIC): total.to(self._sum_dtype).to(self.device)
            for name, total in tensors.items()
            if name.startswith(METRIC)
        }

    def check(self) -> None:
        self.check_finite()

    def _checked(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Return the tensors, scalars without an axis; refuse those that are not of this learner.

        The fused Adam does not check the size of its moments: with moments of another shape it reads and
        writes beyond them.
        """
        kinds = {
            "counts": torch.zeros(2, dtype=torch.int64),
            "sums": torch.zeros(2, dtype=torch.float64),
        }
        if "sums" in tensors and tensors["sums"].dtype == torch.float32:  # of MPS, without float64
            kinds["sums"] = kinds["sums"].float()
        kinds |= {
            name: torch.zeros((), dtype=kinds["sums"].dtype)
            for name in tensors
            if name.startswith(METRIC) and name.removeprefix(METRIC).isidentifier()
        }
        kinds |= {f"target.{name}": value for name, value in self.target.state_dict().items()}
        counts = tensors.get("counts")
        if counts is not None and counts.shape == (2,) and bool(counts[0]):  # else no moments yet
            for name, parameter in self.online.named_parameters():
                kept = self._group_of(parameter).state_shapes(parameter)
                kinds |= {f"optimizer.{name}.{key}": value for key, value in kept.items()}
        for name in sorted(kinds.keys() ^ tensors.keys()):
            verb = "lacks" if name in kinds else "has an unknown tensor"
            raise QuantailError(f"the checkpoint's learner {verb} {name}: it does not fit this run.")
        for name, kind in kinds.items():
            found = tensors[name]
            shapes = [kind.shape] if kind.shape else [(), (1,)]  # a scalar is saved as (1,)
            if found.shape not in shapes or found.dtype != kind.dtype:
                raise QuantailError(
                    f"the checkpoint's learner does not fit this run: {name} is {_shape_of(found)}, "
                    f"and it takes {_shape_of(kind)}."
                )
        return {name: tensors[name].reshape(kind.shape) for name, kind in kinds.items()}

    def _compile(self) -> None:
        """Let torch.compile fuse the operations between products; nothing changes without a compiler."""
        for network in (self.online, self.target):
            network.use_dense_products()
        # Restores the caller's flag after each call, for it holds for the whole process.
        or_eager = torch._dynamo.config.patch(suppress_errors=True)
        self._target = or_eager(torch.compile(self._target_of))
        self._loss = or_eager(torch.compile(self._loss_of))

    def _groups(self) -> list[ParameterGroup]:
        return [self.main, *self.auxiliary.values()]

    def _group_of(self, parameter: nn.Parameter) -> ParameterGroup:
        """Return the group whose optimizer moves this parameter."""
        return next(g for g in self._groups() if any(parameter is one for one in g.parameters))

    def _reset_sums(self) -> None:
        self._count = 0
        self._loss_sum = torch.zeros((), dtype=self._sum_dtype, device=self.device)
        self._value_sum = torch.zeros((), dtype=self._sum_dtype, device=self.device)
        self._metric_sums: dict[str, Tensor] = {}

    @property
    def _sum_dtype(self) -> torch.dtype:
        return torch.float32 if self.device.type == "mps" else torch.float64


def _shape_of(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of shape {tuple(tensor.shape)}"


LEARNERS: dict[str, type[Learner]] = {"standard": Learner}


def build_learner(
    config: LearnerConfig,
    network: ReturnNetwork,
    risk: RiskMeasure,
    taus: np.random.Generator,
    noise: np.random.Generator,
    device: torch.device,
) -> Learner:
    """Return the learner that the configuration names."""
    learner: Learner = config.update.find()(network, config, risk, taus, noise, device)
    return learner

"""The learner: networks, optimizer, and one update."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from quantail.errors import QuantailError
from quantail.learning.batch import Batch
from quantail.learning.losses import quantile_huber_loss
from quantail.learning.targets import bellman_target, greedy, taken
from quantail.networks import QuantileNetwork
from quantail.settings import Settings


@dataclass(frozen=True)
class Progress:
    """What the updates since the last report came to."""

    updates: int
    loss: float
    value: float  # mean predicted return of the taken actions


class Learner:
    """Holds the online and target networks and improves the online one, an update at a time."""

    def __init__(
        self,
        network: QuantileNetwork,
        settings: Settings,
        distortion: Callable[[Tensor], Tensor],
        generator: np.random.Generator,
        device: torch.device,
    ) -> None:
        self.settings = settings
        self.distortion = distortion
        self.generator = generator
        self.device = device
        self.online = network.to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        self.optimizer = torch.optim.Adam(
            self.online.parameters(),
            lr=settings.learning_rate,
            eps=settings.adam_epsilon,
            fused=True,
        )
        self.updates = 0
        self._reset_sums()

    def update(self, batch: Batch) -> None:
        """One step of the optimizer on the mean loss of the batch."""
        batch = batch.to(self.device)
        targets = self.targets(batch)  # [batch, N']
        taus = self._uniform(len(batch.actions), self.settings.online_samples)  # [batch, N]
        predictions = taken(self.online(batch.observations, taus), batch.actions)  # [batch, N]
        loss = quantile_huber_loss(predictions, taus, targets, self.settings.kappa).mean()

        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        if self.settings.gradient_clip:
            torch.nn.utils.clip_grad_norm_(self.online.parameters(), self.settings.gradient_clip)
        self.optimizer.step()

        self.updates += 1
        self._count += 1
        self._loss_sum += loss.detach()
        self._value_sum += predictions.detach().mean()

    @torch.no_grad()
    def targets(self, batch: Batch) -> Tensor:
        """r + γ Z_τ'(x', a*) with a* greedy in the target network under the distortion."""
        s = self.settings
        size = len(batch.actions)
        policy_taus = self._uniform(size, s.policy_samples, self.distortion)  # [batch, K]
        target_taus = self._uniform(size, s.target_samples)  # [batch, N']
        # The K and the N' rows go through the network in one product.
        returns = self.target(
            batch.next_observations, torch.cat([policy_taus, target_taus], dim=1)
        )  # [batch, K + N', actions]
        best = greedy(returns[:, : s.policy_samples])
        return bellman_target(batch.rewards, batch.discounts, returns[:, s.policy_samples :], best)

    def sync_target(self) -> None:
        """Copy the online network into the target network."""
        self.target.load_state_dict(self.online.state_dict())

    def report(self) -> Progress:
        """Means since the last report; refuses to go on from a loss that is not finite."""
        count = self._count
        loss = float(self._loss_sum) / count if count else math.nan
        value = float(self._value_sum) / count if count else math.nan
        self.check_finite()
        self._reset_sums()
        return Progress(count, loss, value)

    def check_finite(self) -> None:
        """Raise if any update since the last report had a loss that is not finite."""
        if not math.isfinite(float(self._loss_sum)):
            raise QuantailError(
                f"the loss was not finite by update {self.updates}: learning diverged; "
                "try a lower learning_rate, clip_rewards or gradient_clip."
            )

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the online network that the next update depends on."""
        tensors = {f"target.{k}": v for k, v in self.target.state_dict().items()}
        for name, parameter in self.online.named_parameters():
            for key, value in self.optimizer.state.get(parameter, {}).items():
                tensors[f"optimizer.{name}.{key}"] = value
        tensors["sums"] = torch.stack([self._loss_sum, self._value_sum])
        tensors["counts"] = torch.tensor([self.updates, self._count])
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse of `tensors`, after the online network's own weights are loaded."""
        prefix = "target."
        self.target.load_state_dict(
            {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
        )
        for name, parameter in self.online.named_parameters():
            prefix = f"optimizer.{name}."
            state = {
                k.removeprefix(prefix): v.to(self.device)
                for k, v in tensors.items()
                if k.startswith(prefix)
            }
            if state:
                self.optimizer.state[parameter] = state
        self._loss_sum, self._value_sum = (t.clone() for t in tensors["sums"].to(self.device))
        self.updates, self._count = (int(n) for n in tensors["counts"])

    def _uniform(self, batch: int, count: int, then: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        # Drawn and distorted on the CPU, so that τ does not depend on the device.
        taus = torch.from_numpy(self.generator.random((batch, count), dtype=np.float32))
        return (then(taus) if then else taus).to(self.device)

    def _reset_sums(self) -> None:
        self._count = 0
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        self._loss_sum = torch.zeros((), dtype=kind, device=self.device)
        self._value_sum = torch.zeros((), dtype=kind, device=self.device)

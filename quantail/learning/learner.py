"""The learner: networks, optimizer, and one update."""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from quantail.errors import DIVERGED, QuantailError
from quantail.learning.batch import Batch
from quantail.learning.objectives import Outcome, compare
from quantail.learning.optimizers import build_fraction_optimizer, build_optimizer
from quantail.learning.targets import Target, bellman_target, munchausen_bonus, soft_target
from quantail.levels import draw_levels
from quantail.networks import QuantileNetwork
from quantail.networks.heads import LearnedFractions
from quantail.risk import RiskMeasure
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
        risk: RiskMeasure,
        taus: np.random.Generator,
        noise: np.random.Generator,
        device: torch.device,
    ) -> None:
        self.settings = settings
        self.risk = risk
        self.taus, self.noise = taus, noise
        self.device = device
        self.online = network.to(device)
        self.target = copy.deepcopy(self.online).requires_grad_(False)
        head = self.online.head
        proposing = list(head.proposal.parameters()) if isinstance(head, LearnedFractions) else []
        apart = {id(parameter) for parameter in proposing}
        self.parameters = [p for p in self.online.parameters() if id(p) not in apart]
        self.optimizers = [build_optimizer(settings, self.parameters)]
        if proposing:
            self.optimizers.append(build_fraction_optimizer(settings, proposing))
        self.updates = 0
        self._reset_sums()

    def update(self, batch: Batch) -> Tensor:
        """One step of the optimizer on the batch's weighted mean loss; the priorities [batch]."""
        batch = batch.to(self.device)
        outcome = self.outcome(batch)
        loss = total = (batch.weights * outcome.losses).mean()
        if outcome.fraction_losses is not None:
            total = loss + (batch.weights * outcome.fraction_losses).mean()

        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)
        total.backward()  # type: ignore[no-untyped-call]
        if self.settings.gradient_clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.settings.gradient_clip)
        for optimizer in self.optimizers:
            optimizer.step()

        self.updates += 1
        self._count += 1
        self._loss_sum += loss.detach()
        self._value_sum += outcome.values.mean()
        return outcome.priorities

    def outcome(self, batch: Batch) -> Outcome:
        """The loss of each transition, on levels and noise that are drawn anew."""
        target = self.targets(batch)
        self.online.draw_noise(self.noise)
        return compare(
            self.online.head,
            self.online.features(batch.observations),
            batch.actions,
            target,
            self.settings.kappa,
            lambda: self._levels(len(batch.actions), self.settings.online_samples).to(self.device),
        )

    @torch.no_grad()
    def targets(self, batch: Batch) -> Target:
        """The law of r + γ Z(x', a*), or its soft form for Munchausen."""
        s, size = self.settings, len(batch.actions)
        policy_taus = self._levels(size, s.policy_samples)  # [batch, K]
        target_taus = self._levels(size, s.target_samples)  # [batch, N']
        self.target.draw_noise(self.noise)
        features = self.target.features(batch.next_observations)
        if s.double:
            law = self.target.law(features, target_taus)
            self.online.draw_noise(self.noise)
            values = self.online.values(
                self.online.features(batch.next_observations), self.risk, policy_taus
            )
        else:
            values, law = self.target.values_and_law(features, self.risk, policy_taus, target_taus)
        if s.munchausen:
            here = self.target.values(
                self.target.features(batch.observations),
                self.risk,
                self._levels(size, s.policy_samples),
            )
            bonus = munchausen_bonus(
                here, batch.actions, s.munchausen_alpha, s.munchausen_temperature, s.munchausen_clip
            )
            return soft_target(
                batch.rewards + bonus, batch.discounts, law, values, s.munchausen_temperature
            )
        return bellman_target(batch.rewards, batch.discounts, law, values.argmax(dim=1))

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
            raise QuantailError(f"the loss was not finite by update {self.updates}: {DIVERGED}")

    def tensors(self) -> dict[str, Tensor]:
        """Everything but the online network that the next update depends on."""
        tensors = {f"target.{k}": v for k, v in self.target.state_dict().items()}
        for name, parameter in self.online.named_parameters():
            for key, value in self._optimizer_state(parameter).items():
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
            self._optimizer_state(parameter).update(state)
        self._loss_sum, self._value_sum = (t.clone() for t in tensors["sums"].to(self.device))
        self.updates, self._count = (int(n) for n in tensors["counts"])

    def _optimizer_state(self, parameter: Tensor) -> dict[str, Tensor]:
        """What the one optimizer that moves this parameter keeps of it."""
        for optimizer in self.optimizers:
            if any(parameter is one for group in optimizer.param_groups for one in group["params"]):
                state: dict[str, Tensor] = optimizer.state[parameter]
                return state
        raise KeyError(parameter)

    def _levels(self, batch: int, count: int) -> Tensor:
        # Drawn on the CPU, so that τ does not depend on the device.
        return draw_levels(self.taus, batch, count, self.settings.tau)

    def _reset_sums(self) -> None:
        self._count = 0
        kind = torch.float32 if self.device.type == "mps" else torch.float64
        self._loss_sum = torch.zeros((), dtype=kind, device=self.device)
        self._value_sum = torch.zeros((), dtype=kind, device=self.device)

"""The gradients of the loss: correct, complete, and only where they belong."""

import torch
from torch import Tensor

from quantail.networks.heads import LossOutput
from quantail.risk import CVaR, Neutral
from quantail.testing.common import close, require
from quantail.testing.forms import slope_text, wrong_slope
from quantail.testing.heads.case import HeadCase, Layers, features, targets
from quantail.testing.heads.losses import ACTIONS

FEATURES = "its features"


def check_gradients(case: HeadCase, layers: Layers) -> None:
    """Run all checks of the gradients for one kind of layers."""
    about = Gradients(case, layers)
    about.check_reach()
    about.check_slopes()
    about.check_slope_of_features()
    about.check_other_actions()
    about.check_values()


def check_nonnegative(case: HeadCase) -> None:
    """Check that a head which skips zeros of nonnegative features does so without a trace."""
    dense, sparse = case.build(), case.build(nonnegative=True)
    sparse.load_state_dict(dense.state_dict())
    x = features(6)
    x[:, 2] = 0
    target = targets(dense, 6)["a target with probs"]
    answers = []
    for head in (dense, sparse):
        z = head.distribution(x, case.taus(6))
        losses = head.loss(x, ACTIONS, target, case.taus(6)).losses
        parameters = [one for one in head.parameters() if one.requires_grad]
        gradients = torch.autograd.grad(losses.mean(), parameters, allow_unused=True)
        answers.append((z, losses, gradients))
    for index, what in enumerate(("distribution", "loss", "gradient")):
        require(
            close(answers[1][index], answers[0][index], 1e-4),
            case.part,
            f"gives another {what} with spec.nonnegative for the same nonnegative features",
            "that flag only allows to skip zeros, and must not change the answer",
        )


class Gradients:
    """One question to a head in float64, and the gradients of the answer."""

    def __init__(self, case: HeadCase, layers: Layers) -> None:
        self.case, self.part = case, case.part
        self.head = case.build(layers=layers).double()
        self.layers = layers
        self.x = features(6, dtype=torch.float64).requires_grad_()
        self.target = targets(self.head, 6, torch.float64)["a target with probs"]
        self.named = {n: p for n, p in self.head.named_parameters() if p.requires_grad}
        self.apart = self.with_own_optimizer()

    def with_own_optimizer(self) -> dict[str, str]:
        """Return the parameters that have an optimizer of their own, and its name."""
        names = {id(parameter): name for name, parameter in self.named.items()}
        apart: dict[str, str] = {}
        for optimizer, about in self.head.optimizers().items():
            for parameter in about.parameters:
                name = names.get(id(parameter), "")
                require(
                    name in self.named and name not in apart,
                    self.part,
                    f"gives the optimizer {optimizer!r} a parameter that is not its own or that has "
                    "another optimizer",
                    "optimizers() must name parameters of the head, each of them once",
                )
                apart[name] = optimizer
        return apart

    def output(self, actions: Tensor = ACTIONS) -> LossOutput:
        """Return the same loss at every call."""
        return self.head.loss(self.x, actions, self.target, self.case.taus(6, torch.float64))

    def mean_loss(self) -> Tensor:
        return self.output().losses.mean()

    def of(self, scalar: Tensor) -> dict[str, Tensor]:
        """Return the gradients of a scalar by name, zeros where there is none."""
        wanted: dict[str, Tensor] = {FEATURES: self.x, **self.named}
        found = torch.autograd.grad(scalar, list(wanted.values()), allow_unused=True, retain_graph=True)
        return {
            name: torch.zeros_like(one) if gradient is None else gradient
            for (name, one), gradient in zip(wanted.items(), found, strict=True)
        }

    def check_reach(self) -> None:
        """Check that each loss gives a gradient to exactly the parameters that it trains."""
        output = self.output()
        for optimizer, losses in {"": output.losses, **output.auxiliary}.items():
            named = f"auxiliary loss {optimizer!r}" if optimizer else "loss"
            require(
                losses.requires_grad,
                self.part,
                f"gives no gradient at all in its {named}",
                "it must not be detached",
            )
            for name, gradient in self.of(losses.mean()).items():
                own = self.apart.get(name, "") == optimizer
                reached = bool((gradient != 0).any())
                require(
                    gradient.isfinite().all(),
                    self.part,
                    f"gives {name} a gradient that is not finite in its {named}",
                    "all gradients must be finite",
                )
                require(
                    reached or not own,
                    self.part,
                    f"gives {name} no gradient in its {named} with {self.layers} layers",
                    "every parameter must be learned (is something detached, or never used?)",
                )
                owner = f"the auxiliary loss {self.apart[name]!r}" if name in self.apart else "the loss"
                require(
                    own or not reached,
                    self.part,
                    f"gives {name} a gradient in its {named}",
                    f"{owner} alone may move it",
                )

    def check_slopes(self) -> None:
        """Compare the gradients of the parameters with finite differences."""
        gradients = self.of(self.mean_loss())
        for name, parameter in self.named.items():
            if name in self.apart:
                continue  # its loss may be any function with the right gradient
            wrong = wrong_slope(self.mean_loss, parameter, gradients[name])
            require(
                wrong is None,
                self.part,
                f"gives {name} the slope {slope_text(wrong, 0)} where finite differences of its loss "
                f"give {slope_text(wrong, 1)}",
                "the gradient must be that of the loss",
            )

    def check_slope_of_features(self) -> None:
        """Compare the gradient of the features with finite differences, up to one positive factor.

        A head may scale the gradient that it sends into the torso, as dueling does. What its own
        optimizers learn may see the features without a gradient, so its weights are set to zero.
        """
        with torch.no_grad():
            for name in self.apart:
                self.named[name].zero_()
        gradient = self.of(self.mean_loss())[FEATURES]
        measured = torch.zeros_like(gradient)
        flat, at = self.x.detach().view(-1), self.x.detach().clone().view(-1)
        for index in range(len(at)):
            with torch.no_grad():
                ends = []
                for step in (1e-7, -1e-7):
                    flat[index] = at[index] + step
                    ends.append(self.mean_loss())
                flat[index] = at[index]
            measured.view(-1)[index] = (ends[0] - ends[1]) / 2e-7
        live = self.x.detach() > 0  # at a zero of the ReLU any gradient will do
        gradient, measured = gradient[live], measured[live]
        factor = float((gradient * measured).sum() / measured.square().sum().clamp(min=1e-30))
        wrong = (gradient - factor * measured).abs() > 1e-3 * measured.abs().max() + 1e-7
        require(
            0 < factor < 1.001 and wrong.double().mean() < 0.1,  # a few may stand at a kink
            self.part,
            f"gives its features another gradient than finite differences of its loss, with "
            f"{self.layers} layers",
            "it must be that of the loss, or a part of it by a factor between 0 and 1",
        )

    def check_other_actions(self) -> None:
        """Check that the loss does not change the returns of actions that were not taken."""
        z = self.head.distribution(self.x, self.case.taus(6, torch.float64))
        require(
            z.atoms.requires_grad or (z.probs is not None and z.probs.requires_grad),
            self.part,
            "gives a distribution without a gradient",
            "its atoms or probs must be differentiable in its features",
        )
        loss = self.of(self.output(torch.zeros_like(ACTIONS)).losses.mean())
        generator = torch.Generator().manual_seed(0)
        taken, others = (
            self.of(
                sum_of(part.atoms[:, actions], generator)
                + sum_of(part.probabilities()[:, actions], generator)
            )
            for part, actions in ((z, [0]), (z, [1, 2]))
        )
        for name in self.named:
            foreign = (taken[name] == 0) & (others[name] != 0)
            require(
                not (loss[name][foreign].abs() > 1e-12).any(),
                self.part,
                f"moves the returns of actions that were not taken, through {name}",
                "the loss must depend on the return of the action taken alone",
            )

    def check_values(self) -> None:
        """Check that the value under a risk measure is differentiable in the features."""
        for risk in (Neutral(), CVaR(0.5)):
            taus = self.case.taus(6, torch.float64)
            value = self.head.value(self.x, risk, taus).sum()
            gradient = self.of(value)[FEATURES] if value.requires_grad else torch.zeros(1)
            require(
                gradient.isfinite().all() and gradient.any(),
                self.part,
                f"gives a value under {risk} without a finite gradient in its features",
                "the value must be differentiable in the features",
            )


def sum_of(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Return a sum with random weights, whose gradient vanishes only where all do."""
    return (torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype) * tensor).sum()

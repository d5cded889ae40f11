"""`check_target`: every check of a target."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from quantail.batch import Batch
from quantail.distributions import ReturnDistribution
from quantail.learning.targets import Target
from quantail.networks import ReturnNetwork
from quantail.risk import CVaR, MeanStd, Neutral, RiskMeasure
from quantail.testing.common import ONLY_TAUS, RowTaus, answer, asking, kept_generators, require
from quantail.testing.forms import check_distribution
from quantail.testing.known import (
    ACTIONS,
    ATOMS,
    KnownConfig,
    known_network,
    times_asked,
    with_raised_action,
)

BATCH = 24
KINDS = {
    "equally likely atoms": KnownConfig(),
    "atoms with probs": KnownConfig(probs=True),
    "comonotone samples": KnownConfig(sampled=True),
}
SAME = 1e-3  # W1 up to which two float32 targets count as the same, times their largest return


def check_target(target: Target) -> None:
    """Check that a target keeps its contract; raise a `PartError` with one sentence if not.

    The checks call it as the learner does, without gradients, on networks whose return distributions
    are known.

        from quantail.testing import check_target
        from my_package import MyTarget
        check_target(MyTarget(0.5))
    """
    with kept_generators():
        part = f"target {getattr(target, '__name__', type(target).__name__)}"
        require(
            callable(target) and not isinstance(target, type),
            part,
            "is a class or cannot be called",
            "check_target takes a target that is made already, such as check_target(MyTarget())",
        )
        uses_online = getattr(target, "uses_online", None)
        require(
            type(uses_online) is bool,
            part,
            f"has {uses_online!r} as uses_online",
            "it must be True or False: whether the online network is asked",
        )
        for kind, config in KINDS.items():
            for risk in (Neutral(), CVaR(0.5), MeanStd(0.5)):
                check = TargetCheck(target, part, config, risk)
                with asking(part, f"the target with a head of {kind} and the risk {risk}"):
                    check.run()


class TargetCheck:
    """A target with two known networks, and the checks of it."""

    def __init__(self, target: Target, part: str, config: KnownConfig, risk: RiskMeasure) -> None:
        self.target, self.part, self.risk = target, part, risk
        self.online = known_network(config, seed=1)
        self.frozen = known_network(config, seed=2).requires_grad_(False)

    def run(self) -> None:
        """Run all checks."""
        self.check_networks()
        self.check_form()
        self.check_online()
        self.check_rewards()
        self.check_terminal()
        self.check_discounts()
        self.check_next_observations()
        self.check_rows()
        self.check_masks()

    def ask(
        self, batch: Batch, rows: Sequence[int] = range(BATCH), raised: tuple[int, float] | None = None
    ) -> ReturnDistribution:
        """Return the target of a batch, as the learner asks for it.

        `raised` is an action and by how much its returns are raised in both networks.
        """
        networks = self.online, self.frozen
        if raised is not None:
            networks = tuple(with_raised_action(one, *raised) for one in networks)  # type: ignore[assignment]
        given = [part for part in vars(batch).values() if part is not None]

        @torch.no_grad()
        def ask() -> ReturnDistribution:
            taus = RowTaus(self.part, rows, several=True)
            return self.target(batch, *networks, self.risk, taus)

        return answer(self.part, "the target of a batch", ask, *given, rule=ONLY_TAUS)

    def check_form(self) -> None:
        """Check the shape and the numbers of the target."""
        for size in (BATCH, 1):
            batch = transitions(size)
            z = self.ask(batch, range(size))
            check_distribution(self.part, f"the target of {size} transitions", z, (size,))
            require(
                not z.atoms.requires_grad and (z.probs is None or not z.probs.requires_grad),
                self.part,
                "gives a target with a gradient",
                "targets must be computed without one",
            )

    def check_networks(self) -> None:
        """Check that both networks stay as they are, before anything else is asked."""

        def state(network: ReturnNetwork) -> list[Any]:
            parameters = list(network.parameters())
            flags = [(p.requires_grad, p.grad is None, p.tolist()) for p in parameters]
            return [*flags, [module.training for module in network.modules()]]

        networks = self.online, self.frozen
        before = [state(one) for one in networks]
        with torch.no_grad():
            taus = RowTaus(self.part, range(BATCH), several=True)
            self.target(transitions(), *networks, self.risk, taus)
        require(
            [state(one) for one in networks] == before,
            self.part,
            "changes a network that it is given",
            "weights, gradients and modes must stay as they are",
        )

    def check_online(self) -> None:
        """Check that the online network is asked exactly if `uses_online` says so."""
        asked = times_asked(self.online)
        self.ask(transitions())
        asked = times_asked(self.online) - asked
        require(
            bool(asked) == self.target.uses_online,
            self.part,
            f"has uses_online {self.target.uses_online} and asks the online network"
            f"{'' if asked else ' nothing'}",
            "uses_online must say whether it does, because the learner draws its noise for that",
        )

    def check_rewards(self) -> None:
        """Check that a higher reward shifts the target by as much."""
        batch = transitions()
        raised = replace(batch, rewards=batch.rewards + 1.5)
        require(
            same(self.ask(raised), self.ask(batch).affine(1.5, 1.0)),
            self.part,
            "does not shift by 1.5 when all rewards are 1.5 higher",
            "the reward must be added to the return",
        )

    def check_terminal(self) -> None:
        """Check that after the end of an episode nothing of the next observation counts."""
        batch = replace(transitions(), discounts=torch.zeros(BATCH))
        z = self.ask(batch)
        for other in (
            replace(batch, next_observations=batch.next_observations.flip(0) + 1),
            replace(batch, next_masks=torch.zeros(BATCH, ACTIONS, dtype=torch.bool)),
        ):
            found = self.ask(other)
            require(
                found.atoms.isfinite().all() and same(found, z),
                self.part,
                "depends on the next observation or its mask where the discount is 0",
                "after the end of an episode nothing of what follows may count",
            )
        spread = float(z.std().max())
        require(
            spread < SAME,
            self.part,
            f"gives a target with a deviation of {spread:.3g} where the discount is 0",
            "after the end of an episode the return is certain",
        )
        bonus = z.mean() - batch.rewards
        require(
            bonus.max() - bonus.min() > SAME or bonus.abs().max() < SAME,
            self.part,
            f"adds {float(bonus[0]):.4g} to every reward where the discount is 0",
            "it must give the reward, and a bonus must depend on the state and the action",
        )

    def check_discounts(self) -> None:
        """Check that the next return is multiplied by the batch's own discounts."""
        batch = transitions()
        found = [
            self.ask(replace(batch, discounts=torch.full((BATCH,), discount)))
            for discount in (0.0, 0.5, 1.0)
        ]
        certain = found[0].mean()  # r and a bonus
        require(
            same(found[1], found[2].affine(certain / 2, 0.5)),
            self.part,
            "does not halve the next return when the discounts are halved",
            "the next return must be multiplied by batch.discounts, which hold γⁿ already",
        )

    def check_next_observations(self) -> None:
        """Check that the target bootstraps from the next observation."""
        batch = replace(transitions(), discounts=torch.ones(BATCH))
        other = replace(batch, next_observations=batch.next_observations + 1)
        require(
            not same(self.ask(other), self.ask(batch)),
            self.part,
            "does not depend on the next observations",
            "it must bootstrap from batch.next_observations where the discount is not 0",
        )

    def check_rows(self) -> None:
        """Check that the target of a transition does not depend on the others of the batch."""
        batch = transitions(masked=True)
        together = self.ask(batch)
        permuted = torch.randperm(BATCH, generator=torch.Generator().manual_seed(0)).tolist()
        for rows, did in ((permuted, "permuted"), ([2], "split"), ([4, 5, 6], "split")):
            parts = {name: part[rows] for name, part in vars(batch).items()}
            expected = ReturnDistribution(together.atoms[rows], together.probabilities()[rows])
            require(
                same(self.ask(Batch(**parts), rows), expected),
                self.part,
                f"gives a transition another target when the batch is {did}",
                "a target must not depend on the other transitions of its batch",
            )

    def check_masks(self) -> None:
        """Check that an action which is not allowed has no influence."""
        batch = transitions()
        for action in range(ACTIONS):
            allowed = torch.ones(BATCH, ACTIONS, dtype=torch.bool)
            allowed[:, action] = False
            taken = torch.where(batch.actions == action, (action + 1) % ACTIONS, batch.actions)
            masked = replace(batch, actions=taken, masks=allowed, next_masks=allowed)
            expected = self.ask(masked)
            for by in (50.0, -50.0):
                require(
                    same(self.ask(masked, raised=(action, by)), expected),
                    self.part,
                    f"changes when the returns of an action that is not allowed are changed by {by:+g}",
                    "an action that batch.masks or batch.next_masks forbids must have no influence",
                )


def transitions(size: int = BATCH, masked: bool = False) -> Batch:
    """Return random transitions, a fifth of them at the end of an episode."""
    generator = torch.Generator().manual_seed(4)

    def drawn() -> Tensor:
        return torch.randn(size, ACTIONS * ATOMS, generator=generator)

    masks = None
    if masked:
        masks = torch.rand(size, ACTIONS, generator=generator) < 0.6
        masks[:, 0] = True
    return Batch(
        observations=drawn(),
        actions=torch.arange(size) % ACTIONS if masks is None else torch.zeros(size, dtype=torch.int64),
        rewards=torch.randn(size, generator=generator),
        discounts=torch.where(torch.arange(size) % 5 == 4, 0.0, 0.9),
        next_observations=drawn(),
        weights=torch.ones(size),
        indices=torch.arange(size),
        masks=masks,
        next_masks=masks,
    )


def same(one: ReturnDistribution, two: ReturnDistribution) -> bool:
    """Return whether two targets are the same distributions."""
    scale = max(1.0, float(two.atoms.abs().max()))
    return bool((one.wasserstein(two) <= SAME * scale).all())

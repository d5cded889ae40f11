"""Train a head on returns whose distribution is known, and check what it has learned."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.learning.optimizers import build_auxiliary
from quantail.networks.heads import ReturnHead
from quantail.risk import CVaR, Neutral
from quantail.taus import RandomTaus, midpoint_taus, midpoints
from quantail.testing.common import require
from quantail.testing.heads.case import HeadCase, features
from quantail.testing.modules import check_copies

SIZE = 32  # features and hidden units: enough that no state is left without a live ReLU
STEPS = 2000
LOOK = 250  # steps between two looks at the distance
RATE = 5e-3
DISTANCE = 0.15  # of the distance between the outer returns: how close the head must come
MEAN_DISTANCE = 0.05  # the same for the mean of a head that learns the mean alone
COPIES = 400  # rows of one state, for averages over τ


class Bandit:
    """Two states and two actions, whose returns have one of two distributions.

    A batch holds every outcome in its exact proportion, as a target of a single atom: the only noise
    left is that of τ.
    """

    def __init__(self, low: float, high: float) -> None:
        width = high - low
        self.outer = ReturnDistribution.of([low + 0.2 * width, low + 0.8 * width], [0.25, 0.75])
        self.inner = ReturnDistribution.of([low + 0.4 * width, low + 0.6 * width])
        self.width = 0.6 * width  # between the outer returns
        rows = []
        for state in (0, 1):
            for action in (0, 1):
                z = self.truth(state, action)
                drawn = z.quantile(midpoints(4, torch.float64)).tolist()
                rows += [(state, action, outcome) for outcome in drawn]
        states, actions, outcomes = zip(*rows, strict=True)
        self.states = features(2, SIZE)
        self.features = self.states[list(states)]
        self.actions = torch.tensor(actions)
        self.target = ReturnDistribution(torch.tensor(outcomes).unsqueeze(1))

    def truth(self, state: int, action: int) -> ReturnDistribution:
        """Return the true distribution of the returns."""
        return self.outer if state == action else self.inner


def bandit_for(head: ReturnHead) -> Bandit:
    """Choose returns that the head can learn.

    They lie within its support. A quantile Huber loss learns quantiles only where returns are much
    farther apart than κ, a Huber loss the mean only where they are closer than κ.
    """
    low, high = head.support() or ((-0.4, 0.6) if head.mean_only else (-8.0, 12.0))
    return Bandit(low, high)


def check_learning(case: HeadCase) -> None:
    """Train a head, and run the checks that need a trained one."""
    head = case.start(SIZE, 2, hidden=SIZE)
    bandit = bandit_for(head)
    check_convergence(case, head, bandit)
    check_state(case, head, bandit)
    check_values(case, head, bandit)
    check_quantiles(case, head, bandit)


def check_state(case: HeadCase, head: ReturnHead, bandit: Bandit) -> None:
    """Check that a copy and a head with the same state_dict give the same answers."""

    def ask(one: ReturnHead) -> list[Any]:
        with torch.no_grad():
            output = one.loss(bandit.features, bandit.actions, bandit.target, midpoint_taus)
            return [one.distribution(bandit.states, midpoint_taus), output.losses, output.values]

    other = case.start(SIZE, 2, hidden=SIZE, seed=1)
    check_copies(case.part, head, other, ask)


def check_convergence(case: HeadCase, head: ReturnHead, bandit: Bandit) -> None:
    """Check that minimising the loss makes the distribution that of the returns."""
    distance, found = float("inf"), ReturnDistribution(torch.zeros(1))
    for _ in train(head, bandit):
        with torch.no_grad():
            z = head.distribution(bandit.states, midpoint_taus)
        allowed = min(DISTANCE + 0.5 / z.atoms.shape[-1], 0.25)
        if head.mean_only or head.parametric:
            allowed = MEAN_DISTANCE
        pairs = [(state, action) for state in (0, 1) for action in (0, 1)]
        distances = [
            distance_between(head, of_row(z, *pair), bandit.truth(*pair)) / bandit.width
            for pair in pairs
        ]
        distance = max(distances)
        worst = pairs[distances.index(distance)]
        found, truth = of_row(z, *worst), bandit.truth(*worst)
        if distance <= allowed:
            return
    what, measure = "distribution", "at a W1 distance of"
    if head.mean_only or head.parametric:
        what, measure = "mean" if head.mean_only else "mean and deviation", "off by"
    require(
        False,
        case.part,
        f"did not learn the {what} of known returns: after {STEPS} steps of Adam on its loss it has the "
        f"mean {float(found.mean()):.4g} where the truth has {float(truth.mean()):.4g}, {measure} "
        f"{distance * bandit.width:.3g}",
        f"it must come within {allowed * bandit.width:.3g} of {in_words(truth)}",
    )


def train(head: ReturnHead, bandit: Bandit) -> Iterator[int]:
    """Take gradient steps as the learner does, and yield after every few steps."""
    auxiliary = head.optimizers()
    apart = {id(one) for about in auxiliary.values() for one in about.parameters}
    main = torch.optim.Adam([p for p in head.parameters() if id(p) not in apart], lr=RATE)
    optimizers = [
        main,
        *(build_auxiliary(one, len(bandit.actions), list(one.parameters)) for one in auxiliary.values()),
    ]
    taus = RandomTaus(np.random.default_rng(0), "stratified")
    for step in range(1, STEPS + 1):
        main.param_groups[0]["lr"] = RATE * max(0.02, 1 - step / STEPS)
        output = head.loss(bandit.features, bandit.actions, bandit.target, taus)
        total = output.losses.mean()
        for name in auxiliary:
            total = total + output.auxiliary[name].mean()
        head.zero_grad()
        total.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        if step % LOOK == 0:
            yield step


def distance_between(head: ReturnHead, z: ReturnDistribution, truth: ReturnDistribution) -> float:
    """Return W1, or how far those moments are apart that the head can learn."""
    if head.mean_only or head.parametric:
        apart = float((z.mean() - truth.mean()).abs())
        return apart if head.mean_only else max(apart, float((z.std() - truth.std()).abs()))
    return float(z.wasserstein(truth))


def of_row(z: ReturnDistribution, state: int, action: int) -> ReturnDistribution:
    """Return the distribution of one state and action, [M]."""
    return ReturnDistribution(z.atoms[state, action], z.probabilities()[state, action])


def in_words(truth: ReturnDistribution) -> str:
    """Return a distribution in words."""
    pairs = zip(truth.atoms.tolist(), truth.probabilities().tolist(), strict=True)
    return "{" + ", ".join(f"{atom:.3g} with probability {prob:.3g}" for atom, prob in pairs) + "}"


def pooled(z: ReturnDistribution) -> ReturnDistribution:
    """Return the mixture over the rows of a batch: [B, A, M] -> [A, B · M]."""
    probs = z.probabilities().transpose(0, 1).flatten(1) / len(z.atoms)
    return ReturnDistribution(z.atoms.transpose(0, 1).flatten(1), probs)


def check_values(case: HeadCase, head: ReturnHead, bandit: Bandit) -> None:
    """Check values against the distribution, averaged over τ where the head samples."""
    taus = RandomTaus(np.random.default_rng(1))
    for state in (0, 1):
        x = bandit.states[state].expand(COPIES, -1)
        with torch.no_grad():
            z = head.distribution(x, taus)
            whole = pooled(z)
            means = head.loss(x, torch.zeros(COPIES, dtype=torch.int64), point(z), taus).values
        count = z.atoms.shape[-1]
        allowed = (0.02 + 0.5 / count) * whole.std()
        check_average(case, "the values of its loss", means, whole.mean()[0], z.mean()[:, 0], 0.0)
        for risk in (Neutral(), CVaR(0.5)):
            expected = risk.value(whole)
            with torch.no_grad():
                value = head.value(x, risk, taus)
                both = head.value_and_distribution(x, risk, taus)
            for action in (0, 1):
                for name, found in (("value", value), ("value_and_distribution", both[0])):
                    check_average(
                        case,
                        f"{name} under {risk}",
                        found[:, action],
                        expected[action],
                        z.mean()[:, action],
                        float(allowed[action]),
                    )
            apart = pooled(both[1]).wasserstein(whole)
            require(
                (apart <= 0.05 * bandit.width + allowed).all(),
                case.part,
                f"gives another distribution in value_and_distribution under {risk}",
                "it must be that of distribution, whatever the risk measure is",
            )


def point(z: ReturnDistribution) -> ReturnDistribution:
    """Return some target for the rows of a distribution."""
    return ReturnDistribution(z.atoms[:, 0, :1].detach())


def check_average(
    case: HeadCase, name: str, found: Tensor, expected: Tensor, sampled: Tensor, allowed: float
) -> None:
    """Check the average over rows [B], within what sampling τ explains."""
    error = (found.var() / len(found) + sampled.var() / len(sampled)).sqrt()
    average, wanted = float(found.mean()), float(expected)
    require(
        abs(average - wanted) <= 5 * float(error) + allowed + 1e-3 * max(1.0, abs(wanted)),
        case.part,
        f"gives {average:.4g} for {name} where its distribution has {wanted:.4g}",
        "the two must agree",
    )


def check_quantiles(case: HeadCase, head: ReturnHead, bandit: Bandit) -> None:
    """Check that the quantiles at all fractions make up the distribution."""
    asked = midpoints(COPIES).expand(2, -1)
    with torch.no_grad():
        z = head.distribution(bandit.states, midpoint_taus)
        quantiles = head.quantiles(bandit.states, asked).transpose(1, 2)  # [2, A, T]
    count = z.atoms.shape[-1]
    apart = ReturnDistribution(quantiles).wasserstein(z)
    allowed = (0.05 + 0.5 / count) * bandit.width
    require(
        (apart <= allowed).all(),
        case.part,
        f"gives quantiles at a W1 distance of {float(apart.max()):.3g} from its distribution",
        f"quantiles at evenly spread fractions must make up the distribution, within {allowed:.3g}",
    )
    require(
        (quantiles[..., -40:].mean(dim=-1) > quantiles[..., :40].mean(dim=-1) - allowed).all(),
        case.part,
        "gives quantiles that fall with the fraction",
        "quantiles at high fractions must be the high returns",
    )

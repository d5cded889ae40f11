"""What can be seen without the loss: the class, how it builds, and the form of its answers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks.heads import ReturnHead
from quantail.networks.layers import NoisyLinear
from quantail.risk import CVaR, DecisionContext, Neutral, RiskMeasure
from quantail.taus import TauSampler, midpoint_taus
from quantail.testing.common import asking, close, require
from quantail.testing.forms import check_config, check_distribution, check_tensor
from quantail.testing.heads.case import HeadCase, Layers, features
from quantail.testing.modules import check_attributes, check_device, check_start

KINDS = (Layers(), Layers(noisy=True), Layers(dueling=True), Layers(noisy=True, dueling=True))
SIZES = ((6, 3, 5), (16, 2, 1), (4, 1, 3), (5, 1, 1))  # features, actions, batch


def check_class(head_class: Any, config: Any) -> HeadCase:
    """Check what can be seen without building the head."""
    part = f"head {getattr(head_class, '__name__', repr(head_class))}"
    require(
        isinstance(head_class, type) and issubclass(head_class, ReturnHead),
        part,
        "does not inherit from ReturnHead",
        "check_head takes a subclass of quantail.networks.ReturnHead, the class itself",
    )
    config = check_config(part, head_class, config)
    with asking(part, "describe(config)"):
        text = head_class.describe(config)
    require(
        isinstance(text, str) and bool(text.strip()),
        part,
        f"gave {text!r} from describe(config)",
        "it must give a few words for the summary of a run",
    )
    return HeadCase(head_class, config)


def check_builds(case: HeadCase) -> list[Layers]:
    """Build the head with all kinds of layers, and return those that it takes."""
    taken = []
    for layers in KINDS:
        with asking(case.part, f"a head with {layers} layers"):
            try:
                head = case.build(layers=layers)
            except QuantailError:
                if layers.dueling:
                    continue  # a head may refuse dueling, in a sentence of its own
                raise
        used = any(isinstance(layer, NoisyLinear) for layer in head.modules())
        require(
            used or not layers.noisy,
            case.part,
            "has no noisy layer where the spec asks for them",
            "it must build its linear layers with spec.linear",
        )
        plain = case.build().state_dict()
        require(
            not layers.dueling or head.state_dict().keys() != plain.keys(),
            case.part,
            "builds the same layers with and without spec.dueling",
            "it must build dueling layers or refuse them with a QuantailError",
        )
        check_attributes(case.part, head)
        check_start(case.part, partial(case.start, layers=layers))
        check_support(case, head)
        taken.append(layers)
    return taken


def check_support(case: HeadCase, head: ReturnHead) -> None:
    """Check that a support is a range."""
    with asking(case.part, "support()"):
        support = head.support()
    require(
        support is None or (len(support) == 2 and support[0] < support[1]),
        case.part,
        f"gave {support!r} from support()",
        "it must give None or the lowest and the highest return",
    )


def check_answers(case: HeadCase, layers: Layers) -> None:
    """Check the form of the answers for several sizes, samplers and modes."""
    for num_features, num_actions, batch in SIZES:
        if layers.dueling and num_actions == 1:
            continue  # Quantail refuses this, because value and advantage would cancel
        head = case.build(num_features, num_actions, layers)
        x = features(batch, num_features)
        states = f"of {batch} states and {num_actions} actions"
        check_forms(case, head, x, states, lambda rows=batch: case.taus(rows))  # type: ignore[misc]
        check_forms(case, head, x, states, lambda: midpoint_taus)
        with torch.inference_mode():
            states = f"{states} under inference_mode"
            check_forms(case, head, x.clone(), states, lambda: midpoint_taus)


def check_forms(
    case: HeadCase, head: ReturnHead, x: Tensor, states: str, taus: Callable[[], TauSampler]
) -> None:
    """Check the form of each answer of one head."""
    part, shape = case.part, (len(x), head.spec.num_actions)
    question = f"the distribution {states}"
    z = case.answer(question, lambda: head.distribution(x, taus()), x)
    check_distribution(part, question, z, shape)
    support = head.support()
    if support is not None:
        low, high = float(z.atoms.detach().min()), float(z.atoms.detach().max())
        slack = 1e-4 * (support[1] - support[0])
        require(
            support[0] - slack <= low and high <= support[1] + slack,
            part,
            f"gave atoms from {low:.4g} to {high:.4g} with the support {support}",
            "all atoms must lie within support()",
        )
    asked = torch.linspace(0.1, 0.9, 4).expand(len(x), -1)
    question = f"the quantiles {states}"
    quantiles = case.answer(question, lambda: head.quantiles(x, asked), x, asked)
    check_tensor(part, question, quantiles, (len(x), 4, shape[1]))
    for risk in (Neutral(), CVaR(0.5)):
        for context in (None, DecisionContext()):
            check_value_forms(case, head, x, states, taus, risk, context)


def check_value_forms(
    case: HeadCase,
    head: ReturnHead,
    x: Tensor,
    states: str,
    taus: Callable[[], TauSampler],
    risk: RiskMeasure,
    context: DecisionContext | None,
) -> None:
    """Check the form of the values under a risk measure."""
    shape = (len(x), head.spec.num_actions)
    question = f"the value under {risk} {states}"
    value = case.answer(question, lambda: head.value(x, risk, taus(), context), x)
    check_tensor(case.part, question, value, shape)
    question = f"value_and_distribution under {risk} {states}"
    both = case.answer(question, lambda: head.value_and_distribution(x, risk, taus(), context), x)
    require(
        isinstance(both, tuple) and len(both) == 2,
        case.part,
        f"gave a {type(both).__name__} when asked for {question}",
        "it must give a tuple of both",
    )
    check_tensor(case.part, question, both[0], shape)
    check_distribution(case.part, question, both[1], shape)


def check_rows(case: HeadCase) -> None:
    """Check that the answer for a state does not depend on the other states of the batch."""
    head = case.build().double()
    x, batch = features(6, dtype=torch.float64), 6
    together = head.distribution(x, case.taus(batch, torch.float64))
    check_distribution(case.part, "the distribution in float64", together, (6, 3), torch.float64)
    order = [3, 0, 5, 1, 4, 2]
    for rows in (order, [2], [0, 1, 2]):
        apart = head.distribution(x[rows], case.taus(rows, torch.float64))
        same = close(apart.atoms, together.atoms[rows], 1e-5) and close(
            apart.probabilities(), together.probabilities()[rows], 1e-5
        )
        did = "permuted" if rows is order else "split"
        require(
            same,
            case.part,
            f"gives a state another distribution when the batch is {did}",
            "the answer for a state must not depend on the other states of its batch "
            "(is something normalised over the wrong axis?)",
        )
    check_each_tau(case, head, x)


def check_each_tau(case: HeadCase, head: ReturnHead, x: Tensor) -> None:
    """Check that the quantile at a fraction does not depend on the other fractions."""
    asked = case.taus(len(x), torch.float64)(len(x), 5)
    together = head.quantiles(x, asked)
    order = [4, 2, 0, 3, 1]
    require(
        close(head.quantiles(x, asked[:, order]), together[:, order], 1e-5),
        case.part,
        "gives other quantiles when the fractions are permuted",
        "quantiles(features, taus)[:, t] must belong to taus[:, t] alone",
    )


def check_devices(case: HeadCase) -> None:
    """Check on torch's meta device that nothing is left behind on the CPU."""
    head, x = case.build().to("meta"), features(5).to("meta")
    actions = torch.zeros(5, dtype=torch.int64, device="meta")
    target = ReturnDistribution(torch.zeros(5, 7, device="meta"))
    check_device(case.part, "the distribution", lambda: head.distribution(x, midpoint_taus))
    check_device(case.part, "the loss", lambda: head.loss(x, actions, target, midpoint_taus))

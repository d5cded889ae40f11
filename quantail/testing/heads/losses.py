"""The form of the loss, and what it may depend on."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from quantail.distributions import ReturnDistribution
from quantail.networks.heads import LossOutput, ReturnHead
from quantail.testing.common import close, require
from quantail.testing.forms import check_tensor
from quantail.testing.heads.case import HeadCase, features, targets

ACTIONS = torch.tensor([0, 2, 1, 1, 0, 2])


def check_losses(case: HeadCase) -> None:
    """Run all checks of the loss but those of its gradients."""
    for num_features, num_actions, batch in ((6, 3, 6), (4, 1, 1)):
        head = case.build(num_features, num_actions)
        actions = ACTIONS[:batch] % num_actions
        for name, target in targets(head, batch).items():
            check_output(case, head, features(batch, num_features), actions, target, name)
    check_rows(case)
    check_target_representation(case)


def check_output(
    case: HeadCase,
    head: ReturnHead,
    x: Tensor,
    actions: Tensor,
    target: ReturnDistribution,
    name: str,
) -> None:
    """Check the form of what a loss gives."""
    part, shape = case.part, (len(x),)
    given = (x, actions, target.atoms, target.probabilities())
    question = f"the loss of {len(x)} states against {name}"
    output = case.answer(question, lambda: head.loss(x, actions, target, case.taus(len(x))), *given)
    require(
        isinstance(output, LossOutput),
        part,
        f"gave a {type(output).__name__} when asked for {question}",
        "it must give a LossOutput",
    )
    for mapping in ("auxiliary", "metrics"):
        require(
            isinstance(getattr(output, mapping), Mapping),
            part,
            f"gave {mapping} of type {type(getattr(output, mapping)).__name__} in its LossOutput",
            "it must be a mapping of names to tensors",
        )
    for field, tensor in named_tensors(output).items():
        check_tensor(part, f"the {field} of {question}", tensor, shape)
        learned = field == "losses" or field.startswith("auxiliary")
        require(
            learned or not tensor.requires_grad,
            part,
            f"gave {field} with a gradient in its LossOutput",
            f"{field} must be detached",
        )
    require(
        output.losses.requires_grad,
        part,
        "gave losses without a gradient in its LossOutput",
        "losses must not be detached",
    )
    require(
        (output.priorities >= 0).all(),
        part,
        f"gave the priority {float(output.priorities.min()):.4g}",
        "priorities must be at least 0",
    )
    names, wanted = set(output.auxiliary), set(head.optimizers())
    require(
        names == wanted,
        part,
        f"gave auxiliary losses named {sorted(names)} with optimizers() named {sorted(wanted)}",
        "there must be one auxiliary loss for each optimizer, of the same name",
    )


def named_tensors(output: LossOutput) -> dict[str, Any]:
    """Return all that a loss gives, by name."""
    found = {"losses": output.losses, "priorities": output.priorities, "values": output.values}
    for mapping in ("auxiliary", "metrics"):
        found |= {f"{mapping} {name!r}": one for name, one in getattr(output, mapping).items()}
    return found


def check_rows(case: HeadCase) -> None:
    """Check that the loss of a transition does not depend on the others of the batch."""
    head = case.build().double()
    x, target = features(6, dtype=torch.float64), targets(head, 6, torch.float64)["a target with probs"]

    def ask(rows: list[int]) -> dict[str, Any]:
        part = ReturnDistribution(target.atoms[rows], target.probabilities()[rows])
        return named_tensors(head.loss(x[rows], ACTIONS[rows], part, case.taus(rows, torch.float64)))

    together = ask(list(range(6)))
    for rows, did in (([3, 0, 5, 1, 4, 2], "permuted"), ([2], "split"), ([0, 1, 2], "split")):
        for name, found in ask(rows).items():
            require(
                close(found, together[name][rows], 1e-5),
                case.part,
                f"gives a transition other {name} when the batch is {did}",
                "the loss of a transition must not depend on the other transitions of its batch",
            )


def check_target_representation(case: HeadCase) -> None:
    """Check that the loss depends on the target's distribution, and not on how it is written."""
    head, x = case.build().double(), features(6, dtype=torch.float64)
    atoms = targets(head, 6, torch.float64)["a target without probs"].atoms[:, :2]
    first, second = atoms[:, :1], atoms[:, 1:]
    quarter = torch.tensor([0.25, 0.75], dtype=torch.float64)
    plain = ReturnDistribution(torch.cat([first, second, second, second], dim=1))
    ways = {
        "with probs": ReturnDistribution(atoms, quarter.expand(6, 2)),
        "with probs that broadcast": ReturnDistribution(atoms, quarter.expand(1, 2)),
        "with its atoms in another order": ReturnDistribution(plain.atoms.flip(1)),
        "as comonotone": replace(plain, comonotone=True),
    }
    expected = head.loss(x, ACTIONS, plain, case.taus(6, torch.float64)).losses
    for way, target in ways.items():
        found = case.answer(
            f"the loss against a target {way}",
            lambda target=target: head.loss(x, ACTIONS, target, case.taus(6, torch.float64)).losses,  # type: ignore[misc]
        )
        require(
            close(found, expected, 1e-5),
            case.part,
            f"gives another loss when the same target is written {way}",
            "the loss must depend on the target's distribution alone, its atoms with their probs",
        )

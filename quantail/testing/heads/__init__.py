"""`check_head`: every check of a return head."""

from typing import Any

from quantail.networks.heads import ReturnHead
from quantail.testing.common import asking, kept_generators
from quantail.testing.heads.answers import (
    check_answers,
    check_builds,
    check_class,
    check_devices,
    check_rows,
)
from quantail.testing.heads.gradients import check_gradients, check_nonnegative
from quantail.testing.heads.learning import check_learning
from quantail.testing.heads.losses import check_losses


def check_head(head_class: type[ReturnHead], config: Any = None) -> None:
    """Check that a return head keeps its contract; raise a `PartError` with one sentence if not.

    `config` is an instance of the head's `Config`; without it the defaults are used. The checks build
    small heads with plain, noisy and dueling layers, ask them, compare gradients with finite
    differences, and train a head for some seconds on returns whose distribution is known. They are
    deterministic and leave the global random generators as they were.

        from quantail.testing import check_head
        from my_package import MyHead
        check_head(MyHead)
    """
    with kept_generators():
        case = check_class(head_class, config)
        kinds = check_builds(case)
        for layers in kinds:
            check_answers(case, layers)
        with asking(case.part, "a distribution in float64"):
            check_rows(case)
        with asking(case.part, "a loss in float64"):
            check_losses(case)
        check_devices(case)
        for layers in kinds:
            with asking(case.part, f"gradients of its loss with {layers} layers"):
                check_gradients(case, layers)
        with asking(case.part, "answers for nonnegative features"):
            check_nonnegative(case)
        with asking(case.part, "steps of gradient descent on its loss"):
            check_learning(case)

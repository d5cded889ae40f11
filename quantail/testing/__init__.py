"""Checks that tell you whether a part of your own keeps its contract.

Each check raises `PartError` with one sentence that names the part, what it did and what it must do.
Quantail's own parts pass the same checks. pytest is not needed.
"""

from quantail.testing.common import PartError
from quantail.testing.heads import check_head
from quantail.testing.risks import check_risk
from quantail.testing.targets import check_target
from quantail.testing.torsos import check_torso

__all__ = ["PartError", "check_head", "check_risk", "check_target", "check_torso"]

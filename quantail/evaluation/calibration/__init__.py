"""Calibration: compare predicted return distributions with the returns that were measured."""

from quantail.evaluation.calibration.continuations import StateProbe
from quantail.evaluation.calibration.play import Rollout
from quantail.evaluation.calibration.result import Calibration
from quantail.evaluation.calibration.run import calibrate
from quantail.evaluation.calibration.verdict import Verdict

__all__ = ["Calibration", "Rollout", "StateProbe", "Verdict", "calibrate"]

"""Is the learned distribution true? Predicted laws beside the returns that then came."""

from quantail.evaluation.calibration.continuations import Spot
from quantail.evaluation.calibration.play import Trail
from quantail.evaluation.calibration.result import Calibration
from quantail.evaluation.calibration.run import calibrate
from quantail.evaluation.calibration.verdict import Verdict

__all__ = ["Calibration", "Spot", "Trail", "Verdict", "calibrate"]

"""Risk measures: functionals of the return distribution by which actions are compared."""

from quantail.risk.distortions import CPW, Custom, CVaR, Distortion, Neutral, Norm, Pow, Wang
from quantail.risk.measures import DecisionContext, RiskMeasure, Slider, TauMap, form_of
from quantail.risk.parsing import MEASURES, parse_risk
from quantail.risk.utilities import (
    CustomUtility,
    Entropic,
    ExpectedUtility,
    ExpUtility,
    MeanStd,
    Prospect,
)

__all__ = [
    "CPW",
    "MEASURES",
    "CVaR",
    "Custom",
    "CustomUtility",
    "DecisionContext",
    "Distortion",
    "Entropic",
    "ExpUtility",
    "ExpectedUtility",
    "MeanStd",
    "Neutral",
    "Norm",
    "Pow",
    "Prospect",
    "RiskMeasure",
    "Slider",
    "TauMap",
    "Wang",
    "form_of",
    "parse_risk",
]

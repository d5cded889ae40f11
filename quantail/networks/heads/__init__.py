"""Return heads: how the return distribution is represented, and the loss that trains it."""

from quantail.networks.heads.base import AuxiliaryOptimizer, HeadSpec, LossOutput, ReturnHead, mlp_head
from quantail.networks.heads.categorical import Categorical
from quantail.networks.heads.expected import Expected
from quantail.networks.heads.fractions import LearnedFractions
from quantail.networks.heads.hl_gauss import HLGauss
from quantail.networks.heads.implicit import ImplicitQuantiles
from quantail.networks.heads.quantiles import FixedQuantiles

HEADS: dict[str, type[ReturnHead]] = {
    "expected": Expected,
    "categorical": Categorical,
    "quantiles": FixedQuantiles,
    "implicit": ImplicitQuantiles,
    "fractions": LearnedFractions,
    "hl-gauss": HLGauss,
}

__all__ = [
    "HEADS",
    "AuxiliaryOptimizer",
    "Categorical",
    "Expected",
    "FixedQuantiles",
    "HLGauss",
    "HeadSpec",
    "ImplicitQuantiles",
    "LearnedFractions",
    "LossOutput",
    "ReturnHead",
    "mlp_head",
]

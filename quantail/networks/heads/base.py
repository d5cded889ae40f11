"""What a return head is: the part that represents the return distribution and defines its loss."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import Tensor, nn

from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError
from quantail.networks.layers import MLPHead
from quantail.part_config import NoConfig
from quantail.risk import DecisionContext, RiskMeasure
from quantail.taus import TauSampler, midpoint_taus


@dataclass(frozen=True)
class HeadSpec:
    """What a head is built from, besides its own configuration.

    Attributes:
        num_features: Number of features of the torso.
        num_actions: Number of actions; 1 for a critic f(x, a).
        hidden: Units of the hidden layer.
        linear: Makes a linear layer from its sizes, plain or noisy.
        dueling: Whether the head separates the value of a state from the advantages of actions.
        nonnegative: Whether the features come from a ReLU. Only then may zeros be skipped.
    """

    num_features: int
    num_actions: int  # 1 for a critic f(x, a)
    hidden: int  # units of the hidden layer
    linear: Callable[[int, int], nn.Module] = nn.Linear  # plain or noisy
    dueling: bool = False
    nonnegative: bool = False  # whether the features come from a ReLU; only then may zeros be skipped


@dataclass(frozen=True)
class LossOutput:
    """The loss of a head for every transition of a batch.

    The learner weights the losses and takes the mean.

    Attributes:
        losses: The losses, [B].
        priorities: The priorities of prioritized replay, [B].
        values: The predicted mean return of the actions taken, [B].
        auxiliary: Losses of further optimizers, [B] each, by their name in `ReturnHead.optimizers`.
        metrics: Further columns of metrics.csv, [B] each.
    """

    losses: Tensor
    priorities: Tensor
    values: Tensor  # the predicted mean return of the actions taken
    auxiliary: Mapping[str, Tensor] = field(default_factory=dict)
    metrics: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class AuxiliaryOptimizer:
    """An optimizer of its own for some of a head's parameters: centered RMSProp.

    `epsilon` is meant for the gradient of the sum over a batch, as papers state it.
    """

    parameters: tuple[nn.Parameter, ...]
    learning_rate: float
    epsilon: float


class ReturnHead(nn.Module):
    """Base class of return heads: from features ψ(x) [B, d] to the return distribution of every action.

    A head implements `distribution` and `loss`. The other methods have defaults that it may override,
    for exactness or speed. It draws random numbers only from the sampler `taus`.

    Args:
        spec: Sizes and kinds of layers.
        config: The head's own settings, an instance of its `Config`.
    """

    Config: ClassVar[type] = NoConfig  # a frozen dataclass: the head's own settings
    mean_only: ClassVar[bool] = False  # whether it learns the mean and no distribution
    # Whether its distributions are of one family, such as normal ones, so that in general only their
    # mean and standard deviation can match those of the returns.
    parametric: ClassVar[bool] = False
    supports_dueling: ClassVar[bool] = False  # whether it builds dueling layers where the spec asks
    tau_sampling: str = "independent"  # how training samples its fractions τ (see `sample_taus`)

    def __init__(self, spec: HeadSpec, config: Any) -> None:
        super().__init__()
        if spec.dueling and not self.supports_dueling:
            raise QuantailError(f"dueling takes a head with dueling layers, not {type(self).__name__}.")
        self.spec, self.config = spec, config

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        """Return the distribution of Z(x, ·): [B, d] -> atoms [B, A, M]."""
        raise NotImplementedError

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """Return the loss of the actions [B] against the target distribution [B, M′]."""
        raise NotImplementedError

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        """Return Z_τ(x, a): taus [B, T] -> [B, T, A]."""
        distribution = self.distribution(features, midpoint_taus)
        return distribution.quantile(taus.unsqueeze(1)).transpose(1, 2)

    def value(
        self,
        features: Tensor,
        risk: RiskMeasure,
        taus: TauSampler,
        context: DecisionContext | None = None,
    ) -> Tensor:
        """Return Q_β(x, a), [B, A], differentiable in the features."""
        return risk.value(self.distribution(features, taus), context)

    def value_and_distribution(
        self,
        features: Tensor,
        risk: RiskMeasure,
        taus: TauSampler,
        context: DecisionContext | None = None,
    ) -> tuple[Tensor, ReturnDistribution]:
        """Return `value` and `distribution`, for the cost of one pass where that is possible."""
        distribution = self.distribution(features, taus)
        return risk.value(distribution, context), distribution

    def unsorted_quantiles(self, features: Tensor, taus: Tensor) -> Tensor | None:
        """Return quantiles at the given τ, [B, T, A], without sorting them.

        None for a head whose quantiles cannot cross.
        """
        return None

    def start(self) -> None:
        """Set weights that must not start random, after all have been initialised."""

    def optimizers(self) -> Mapping[str, AuxiliaryOptimizer]:
        """Return the optimizers for parameters that the main one must not move."""
        return {}

    def support(self) -> tuple[float, float] | None:
        """Return the range of returns that the head can represent, or None where there is none."""
        return None

    @staticmethod
    def describe(config: Any) -> str:
        """Return a few words about a head of this configuration, for the summary of a run."""
        return str(config)

    def use_dense_products(self) -> None:
        """Switch off products whose shapes depend on the data, for torch.compile."""

    def use_kernels(self) -> bool:
        """Use compiled kernels, and return whether the head has any that fit (see `kernels`)."""
        return False


def mlp_head(spec: HeadSpec, outputs: int, inputs: int | None = None) -> MLPHead:
    """Build one hidden layer and the outputs, plain or noisy as the spec says."""
    first = spec.linear(spec.num_features if inputs is None else inputs, spec.hidden)
    return MLPHead(first, nn.ReLU(inplace=True), spec.linear(spec.hidden, outputs))


def of_actions(returns: Tensor, actions: Tensor) -> Tensor:
    """Return the samples of one action per state: [B, T, A] and [B] -> [B, T]."""
    index = actions.view(-1, 1, 1).expand(-1, returns.shape[1], 1)
    return returns.gather(2, index).squeeze(2)


def scale_gradient(features: Tensor, scale: float) -> Tensor:
    """Return the same features, whose gradient is scaled on its way back."""
    return scale * features + (1 - scale) * features.detach()

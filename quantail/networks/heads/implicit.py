"""The whole quantile function, sampled at any τ."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from quantail.distributions import ReturnDistribution
from quantail.networks.embeddings import Embedding
from quantail.networks.heads.base import HeadSpec, LossOutput, ReturnHead, mlp_head, of_actions
from quantail.networks.heads.quantiles import HuberConfig, quantile_loss
from quantail.networks.kernels import applies, load_kernels
from quantail.networks.layers import weights_of
from quantail.networks.products import merged_linear, use_sparse_product
from quantail.risk import DecisionContext, RiskMeasure
from quantail.settings import PAPER, setting
from quantail.taus import TauSampler

KERNEL_UNITS, KERNEL_COSINES = 64, 16  # compiled kernels take multiples of these, to fill their vectors


@dataclass(frozen=True)
class EmbeddingConfig(HuberConfig):
    """The embedding φ of the quantile fraction, and how it is combined with the features ψ."""

    embedding: str = setting(
        "cosine",
        "embedding of the quantile fraction",
        source=PAPER,
        choices=("cosine", "mlp", "linear"),
    )
    embedding_size: int = setting(
        64, "number of cosines, or of hidden units of the mlp embedding", source=PAPER, least=1
    )
    embedding_activation: str = setting(
        "relu", "activation function after the embedding", source=PAPER, choices=("relu", "sigmoid")
    )
    merge: str = setting(
        "multiply",
        "how features f and embedding e are combined: f e, [f, e] or f (1 + e)",
        source=PAPER,
        choices=("multiply", "concatenate", "residual"),
    )


@dataclass(frozen=True)
class ImplicitConfig(EmbeddingConfig):
    """Implicit quantiles: how many fractions are sampled, and how."""

    online_samples: int = setting(
        64, "number of sampled quantile fractions of the prediction (N)", source=PAPER, least=1
    )
    target_samples: int = setting(
        64, "number of sampled quantile fractions of the target (N′)", source=PAPER, least=1
    )
    policy_samples: int = setting(
        32, "number of sampled quantile fractions for choosing an action (K)", source=PAPER, least=1
    )
    tau_sampling: str = setting(
        "independent",
        "how quantile fractions are sampled: independently, one from each interval of length 1/N, in "
        "pairs t and 1 − t, or shared by the whole batch",
        source=PAPER,
        choices=("independent", "stratified", "antithetic", "shared"),
    )


class ImplicitQuantiles(ReturnHead):
    """Z_τ(x, a) ≈ f(m(ψ(x), φ(τ)))_a, equation 4 and the appendix of the IQN paper.

    The loss takes N samples of τ, the target N′ and the policy K. Dueling: Z_τ(x, a) = V_τ(x) +
    A_τ(x, a) − the mean over actions of A at τ = ½. The subtracted baseline does not depend on τ, so
    the quantile function stays monotone where V and A are.
    """

    Config = ImplicitConfig
    supports_dueling = True
    config: ImplicitConfig

    def __init__(self, spec: HeadSpec, config: ImplicitConfig) -> None:
        super().__init__(spec, config)
        self.phi = Embedding(
            config.embedding, config.embedding_size, config.embedding_activation, spec.num_features
        )
        self.merge, self.tau_sampling = config.merge, config.tau_sampling
        # Zeros of ψ and φ are zeros of the merge, and may be skipped where ψ comes from a ReLU.
        self.sparse = config.merge == "multiply" and self.phi.rectified and spec.nonnegative
        inputs = (2 if config.merge == "concatenate" else 1) * spec.num_features
        self.f = mlp_head(spec, spec.num_actions, inputs)
        self.v = mlp_head(spec, 1, inputs) if spec.dueling else None
        self.compiled = False  # whether `quantiles` runs in a compiled kernel
        self.compiled_loss = False  # whether the loss does
        self.linear_layers: tuple[nn.Linear, ...] = ()  # those that the kernel reads

    def quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        taus = taus.to(features.device)
        if self.v is None:
            return self._streams(features, taus, self.f)[0]
        middle = torch.full_like(taus[:, :1], 0.5)
        with_middle = torch.cat([taus, middle], dim=1)  # [B, T + 1]
        advantages, values = self._streams(features, with_middle, self.f, self.v)
        return values[:, :-1] + advantages[:, :-1] - advantages[:, -1:].mean(dim=2, keepdim=True)

    def distribution(self, features: Tensor, taus: TauSampler) -> ReturnDistribution:
        """Return N′ equally likely samples of every action's return, at the same τ for all actions."""
        sampled = taus(len(features), self.config.target_samples)
        return _samples(self.quantiles(features, sampled))

    def value(
        self,
        features: Tensor,
        risk: RiskMeasure,
        taus: TauSampler,
        context: DecisionContext | None = None,
    ) -> Tensor:
        """Return the mean of Z at β(τ) over K samples; other measures are computed from K samples."""
        sampled = taus(len(features), self.config.policy_samples)
        if risk.tau_map is None:
            return risk.value(_samples(self.quantiles(features, sampled)), context)
        return self.quantiles(features, risk.tau_map(sampled)).mean(dim=1)

    def value_and_distribution(
        self,
        features: Tensor,
        risk: RiskMeasure,
        taus: TauSampler,
        context: DecisionContext | None = None,
    ) -> tuple[Tensor, ReturnDistribution]:
        policy = taus(len(features), self.config.policy_samples)  # [B, K]
        target = taus(len(features), self.config.target_samples)  # [B, N′]
        distorted = policy if risk.tau_map is None else risk.tau_map(policy)
        returns = self.quantiles(features, torch.cat([distorted, target], dim=1))  # [B, K + N′, A]
        for_policy, for_target = returns[:, : policy.shape[1]], returns[:, policy.shape[1] :]
        if risk.tau_map is None:
            return risk.value(_samples(for_policy), context), _samples(for_target)
        return for_policy.mean(dim=1), _samples(for_target)

    def loss(
        self, features: Tensor, actions: Tensor, target: ReturnDistribution, taus: TauSampler
    ) -> LossOutput:
        """IQN: the quantile Huber loss at N samples of τ (equation 3)."""
        sampled = taus(len(features), self.config.online_samples).to(features.device)  # [B, N]
        predictions = of_actions(self.quantiles(features, sampled), actions)
        return quantile_loss(
            predictions, sampled, target, self.config.kappa, compiled=self.compiled_loss
        )

    def unsorted_quantiles(self, features: Tensor, taus: Tensor) -> Tensor:
        return self.quantiles(features, taus)

    @staticmethod
    def describe(config: ImplicitConfig) -> str:
        c = config
        return f"{c.online_samples}, {c.target_samples} and {c.policy_samples} samples of τ (N, N′, K)"

    def use_dense_products(self) -> None:
        self.sparse = self.compiled = self.compiled_loss = False

    def use_kernels(self) -> bool:
        if load_kernels() is None:
            return False
        self.compiled_loss = True
        spec, config, first, last = self.spec, self.config, self.f[0], self.f[2]
        fits = (
            self.sparse
            and self.v is None
            and config.embedding == "cosine"
            and config.embedding_size % KERNEL_COSINES == 0
            and spec.hidden % KERNEL_UNITS == 0
        )
        if fits and isinstance(first, nn.Linear) and isinstance(last, nn.Linear):  # not noisy
            first.weight.data = first.weight.data.t().contiguous().t()  # stored as the kernel reads it
            self.linear_layers = (self.phi.linear, first, last)
            self.compiled = True
        return True

    def _streams(self, features: Tensor, taus: Tensor, *streams: nn.Sequential) -> list[Tensor]:
        """Return the outputs of each stream for the merged features, [B, T, outputs] each."""
        if self.compiled and applies(features) and not taus.requires_grad:
            compiled = [(layer.weight, layer.bias) for layer in self.linear_layers]
            return [load_kernels().head_quantiles(features, taus, *compiled)]
        if not self.sparse or not use_sparse_product(features, taus.shape[1]):
            merged = self._merged(features, taus)
            return [stream(merged) for stream in streams]
        layers = [weights_of(stream[0]) for stream in streams]
        phi = weights_of(self.phi.linear)
        hidden = merged_linear(features, self.phi.basis(taus), phi, layers)
        return [stream[2](stream[1](h)) for stream, h in zip(streams, hidden, strict=True)]

    def _merged(self, features: Tensor, taus: Tensor) -> Tensor:
        psi = features.unsqueeze(1)  # [B, 1, d]
        phi: Tensor = self.phi(taus)  # [B, T, d]
        if self.merge == "multiply":
            return psi * phi
        if self.merge == "residual":
            return psi * (1 + phi)
        return torch.cat([psi.expand_as(phi), phi], dim=-1)


def _samples(returns: Tensor) -> ReturnDistribution:
    """Return equally likely returns [B, T, A] as a distribution."""
    return ReturnDistribution(returns.transpose(1, 2), comonotone=True)

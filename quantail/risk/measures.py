"""What a risk measure is: a functional of the return distribution."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

from torch import Tensor

from quantail import registry
from quantail.distributions import ReturnDistribution
from quantail.errors import QuantailError

TauMap = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class DecisionContext:
    """What a risk measure may know at a decision besides the return distributions.

    Every field is optional.

    Attributes:
        mask: The actions that are allowed, [B, A] bool.
        risk_parameter: A parameter of the measure for each state, [B].
        stock: The return of the episode so far, [B].
        discount: A discount factor for each state, [B].
        state: Anything else.
    """

    mask: Tensor | None = None  # [B, A] bool: the actions that are allowed
    risk_parameter: Tensor | None = None  # [B]
    stock: Tensor | None = None  # [B]: what the episode has earned so far
    discount: Tensor | None = None  # [B]
    state: Any = None

    def allowed(self, values: Tensor) -> Tensor:
        """Return the values [B, A] with −∞ for forbidden actions; the same tensor without a mask."""
        return values if self.mask is None else values.masked_fill(~self.mask, -math.inf)

    def check(self) -> None:
        """Raise an error if the mask of a state forbids every action."""
        if self.mask is None:
            return
        possible = self.mask.any(dim=1)
        if not possible.all():
            raise QuantailError(
                f"the action mask of state {int((~possible).nonzero()[0])} forbids all "
                f"{self.mask.shape[1]} actions: it takes at least one that is allowed."
            )


@dataclass(frozen=True)
class Slider:
    """The slider with which the live page changes the parameter η of a risk measure.

    Attributes:
        least: Lowest value of η.
        most: Highest value of η.
        step: Step of the slider.
        start: Initial value.
        left: Label of the left end.
        right: Label of the right end.
    """

    least: float
    most: float
    step: float
    start: float
    left: str
    right: str


class RiskMeasure:
    """Base class of risk measures: functionals of the return distribution by which actions are compared.

    Subclasses are small frozen dataclasses that implement `value`. Their fields are numbers, which
    follow the name in the text form: `cvar:0.25`. A measure that distorts the quantile fraction τ also
    has a `tau_map`, which lets an implicit head sample at β(τ).
    """

    name: ClassVar[str] = "own"  # of a built-in measure; others get a name when they are registered
    summary: ClassVar[str] = "a measure of your own"
    takes: ClassVar[str] = ""  # which numbers it takes, in words
    # The η at which the measure is the mean, if there is one. A measure that sets this and has other
    # fields than `eta` also overrides `annealed`.
    neutral_eta: ClassVar[float | None] = None
    is_neutral: ClassVar[bool] = False
    monotone: ClassVar[bool] = True  # whether higher returns are never worth less
    slider: ClassVar[Slider | None] = None  # of η on the live page, for a measure whose one number is η

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        """Return the value of each distribution: [..., M] -> [...]."""
        raise NotImplementedError

    @property
    def tau_map(self) -> TauMap | None:
        """β, for a measure that is the mean of Z at β(τ) for uniform τ; None for all others."""
        return None

    def tau_weights(self, edges: Tensor) -> Tensor | None:
        """Return how much each interval of τ between the edges counts; None without a `tau_map`."""
        return None

    def annealed(self, fraction: float) -> "RiskMeasure":
        """Linearly anneal η from its neutral value; `fraction=1` returns the measure itself."""
        if self.neutral_eta is None or fraction >= 1:
            return self
        eta: float = self.eta  # type: ignore[attr-defined]
        return type(self)(self.neutral_eta + (eta - self.neutral_eta) * fraction)  # type: ignore[call-arg]

    def in_range(self) -> bool:
        """Return whether η is one that the measure takes."""
        return True

    def __post_init__(self) -> None:
        if not self.in_range():
            name = registry.label("risk", registry.text_of("risk", type(self)))
            takes = self.takes or "other numbers"
            raise QuantailError(
                f"risk {self.label} is out of range: {form_of(name, type(self))} takes {takes}."
            )

    def __str__(self) -> str:
        """Return the text by which a run remembers the measure, and from which it is made again."""
        numbers = [_exact(getattr(self, one)) for one in _parameters(type(self))]
        return ":".join(filter(None, (registry.text_of("risk", type(self)), ",".join(numbers))))

    @property
    def label(self) -> str:
        """The text form for display, with the name under which a measure from outside is registered."""
        return registry.label("risk", str(self))


@dataclass(frozen=True)
class Named(RiskMeasure):
    """A measure that a module holds, under the `module:name` by which it can be imported again."""

    measure: RiskMeasure
    text: str
    name = "named"

    def __post_init__(self) -> None:
        object.__setattr__(self, "neutral_eta", self.measure.neutral_eta)
        object.__setattr__(self, "is_neutral", self.measure.is_neutral)

    def annealed(self, fraction: float) -> RiskMeasure:
        return self if fraction >= 1 else self.measure.annealed(fraction)

    def value(self, z: ReturnDistribution, context: DecisionContext | None = None) -> Tensor:
        return self.measure.value(z, context)

    @property
    def tau_map(self) -> TauMap | None:
        return self.measure.tau_map

    def tau_weights(self, edges: Tensor) -> Tensor | None:
        return self.measure.tau_weights(edges)

    def __str__(self) -> str:
        return self.text


def form_of(name: str, measure: type[RiskMeasure]) -> str:
    """Return the text form of a measure of this name, such as `cvar:η`."""
    numbers = ("η" if one == "eta" else one for one in _parameters(measure))
    return ":".join(filter(None, (name, ",".join(numbers))))


def _parameters(measure: type[RiskMeasure]) -> list[str]:
    return [one.name for one in fields(measure)] if is_dataclass(measure) else []


def _exact(eta: float) -> str:
    """Return the shortest text that reads back as the same number."""
    short = f"{eta:g}"
    return short if float(short) == eta else repr(float(eta))

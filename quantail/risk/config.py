"""The risk measures of a run: of its behaviour, its targets and its evaluation."""

from dataclasses import dataclass, replace
from typing import Any

from quantail import registry
from quantail.errors import QuantailError
from quantail.parts import Group
from quantail.risk.measures import RiskMeasure
from quantail.risk.parsing import parse_risk
from quantail.settings import OURS, PAPER, setting
from quantail.trust import Origin

PARTS = ("behaviour", "target", "evaluation")


@dataclass(frozen=True)
class RiskConfig(Group):
    """The risk measures by their texts, such as `cvar:0.25`, and how they are annealed."""

    risk: str = setting(
        "neutral",
        "risk measure for acting, targets and evaluation (see `quantail risks`)",
        source=PAPER,
    )
    behaviour_risk: str = setting(
        "", "risk measure for acting during training; `risk` if empty", source=OURS
    )
    target_risk: str = setting(
        "",
        "risk measure that selects the greedy action of the target; `risk` if empty",
        source=OURS,
    )
    evaluation_risk: str = setting(
        "", "risk measure for evaluation and for the trained agent; `risk` if empty", source=OURS
    )
    risk_anneal_steps: int = setting(
        0,
        "linearly anneal behaviour_risk and target_risk from neutral to their final parameter over this "
        "many steps after learning_starts; 0 disables annealing",
        unit="steps",
        source=OURS,
        least=0,
    )

    def __post_init__(self) -> None:
        for name in ("risk", *(f"{part}_risk" for part in PARTS)):
            if isinstance(measure := getattr(self, name), RiskMeasure):
                object.__setattr__(self, name, str(measure))
        super().__post_init__()

    @property
    def played(self) -> str:
        """The risk measure of evaluation and of the trained agent."""
        return self.evaluation_risk or self.risk

    def texts(self) -> tuple[str, ...]:
        """Return the texts of all measures that are given."""
        named = (self.risk, *(getattr(self, f"{part}_risk") for part in PARTS))
        return tuple(text for text in named if text)

    def is_named_by(self, risk: Any) -> bool:
        """Return whether a Python function or measure is the one that the setting `risk` names."""
        return not isinstance(risk, str) and str(parse_risk(risk)) == self.risk

    def measures(self, risk: RiskMeasure, origin: Origin | None = None) -> "RiskMeasures":
        """Return the measures; `risk` is the one that the setting `risk` names.

        `origin` is the file that the settings come from, if any.
        """
        found = RiskMeasures(*(self._measure(part, risk, origin) for part in PARTS))
        if self.risk_anneal_steps:
            found.require_annealing()
        return found

    def canonical(self, risk: RiskMeasure, measures: "RiskMeasures") -> "RiskConfig":
        """Return the settings with every measure in its canonical text form, as results name it."""
        texts = {f"{part}_risk": str(getattr(measures, part)) for part in PARTS}
        given: dict[str, Any] = {name: text for name, text in texts.items() if getattr(self, name)}
        return replace(self, risk=str(risk), **given)

    def describe(self) -> str:
        """Describe the measures, for example `cvar:0.1` or `cvar:0.1, evaluation neutral`."""
        texts = {part: getattr(self, f"{part}_risk") for part in PARTS}
        words = [
            f"{part} {registry.label('risk', text)}"
            for part, text in texts.items()
            if text and text != self.risk
        ]
        if self.risk_anneal_steps:
            words.append(f"annealed over {self.risk_anneal_steps:,} steps")
        return ", ".join([registry.label("risk", self.risk), *words])

    def _measure(self, part: str, risk: RiskMeasure, origin: Origin | None) -> RiskMeasure:
        text: str = getattr(self, f"{part}_risk")
        try:
            return parse_risk(text, origin) if text else risk
        except QuantailError as error:
            raise QuantailError(f"{part}_risk: {error}") from error


@dataclass(frozen=True)
class RiskMeasures:
    """The risk measures that choose actions in training, a* of the target, and actions in evaluation."""

    behaviour: RiskMeasure
    target: RiskMeasure
    evaluation: RiskMeasure

    def at(self, fraction: float) -> "RiskMeasures":
        """Linearly anneal η of behaviour and target from neutral; `fraction=1` changes nothing."""
        return replace(
            self,
            behaviour=self.behaviour.annealed(fraction),
            target=self.target.annealed(fraction),
        )

    def require_annealing(self) -> None:
        """Raise an error if no measure can be annealed from neutral."""
        for measure in (self.behaviour, self.target):
            if not measure.is_neutral and measure.neutral_eta is None:
                raise QuantailError(
                    f"risk_anneal_steps takes a measure that can be annealed from neutral, such as "
                    f"cvar, wang or entropic, not {measure.label}."
                )
        if self.behaviour.is_neutral and self.target.is_neutral:
            raise QuantailError(
                "risk_anneal_steps has no effect while behaviour and target are neutral."
            )

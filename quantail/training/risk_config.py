"""The risk measures of a run's behaviour, targets and evaluation, and their annealing."""

from dataclasses import dataclass, replace

from quantail import registry
from quantail.errors import QuantailError
from quantail.risk import RiskMeasure, parse_risk
from quantail.settings import Settings
from quantail.trust import Origin


@dataclass(frozen=True)
class RiskConfig:
    """The risk measures that choose actions in training, a* of the target, and actions in evaluation."""

    behaviour: RiskMeasure
    target: RiskMeasure
    evaluation: RiskMeasure

    def at(self, fraction: float) -> "RiskConfig":
        """Linearly anneal η of behaviour and target from neutral; `fraction=1` changes nothing."""
        return replace(
            self,
            behaviour=self.behaviour.annealed(fraction),
            target=self.target.annealed(fraction),
        )


PARTS = ("behaviour", "target", "evaluation")


def risk_config_of(settings: Settings, risk: RiskMeasure, origin: Origin | None = None) -> RiskConfig:
    """Return the risk configuration of the settings.

    `risk` is the measure that their setting `risk` names. `origin` is the file that the settings come
    from, if any.
    """
    config = RiskConfig(*(_measure(settings, part, risk, origin) for part in PARTS))
    if settings.risk_anneal_steps:
        for measure in (config.behaviour, config.target):
            if not measure.is_neutral and measure.neutral_eta is None:
                raise QuantailError(
                    f"risk_anneal_steps takes a measure that can be annealed from neutral, such as "
                    f"cvar, wang or entropic, not {measure.label}."
                )
        if config.behaviour.is_neutral and config.target.is_neutral:
            raise QuantailError(
                "risk_anneal_steps has no effect while behaviour and target are neutral."
            )
    return config


def with_canonical_risks(settings: Settings, risk: RiskMeasure, config: RiskConfig) -> Settings:
    """Return the settings with every risk measure in its canonical text form, as results name it."""
    parts = {f"{part}_risk": str(measure) for part, measure in vars(config).items()}
    given = {name: text for name, text in parts.items() if getattr(settings, name)}
    return settings.with_changes(given | {"risk": str(risk)})


def _measure(settings: Settings, part: str, risk: RiskMeasure, origin: Origin | None) -> RiskMeasure:
    text: str = getattr(settings, f"{part}_risk")
    try:
        return parse_risk(text, origin) if text else risk
    except QuantailError as error:
        raise QuantailError(f"{part}_risk: {error}") from error


def describe_risk(settings: Settings) -> str:
    """Describe the risk configuration, for example `cvar:0.1` or `cvar:0.1, evaluation neutral`."""
    parts = {part: getattr(settings, f"{part}_risk") for part in PARTS}
    words = [
        f"{part} {registry.label('risk', text)}"
        for part, text in parts.items()
        if text and text != settings.risk
    ]
    if settings.risk_anneal_steps:
        words.append(f"annealed over {settings.risk_anneal_steps:,} steps")
    return ", ".join([registry.label("risk", settings.risk), *words])

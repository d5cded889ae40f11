"""A run's attitude to risk: which measure acts where, and how it is eased in."""

from dataclasses import dataclass, replace

from quantail.errors import QuantailError
from quantail.registry import Origin
from quantail.risk import Neutral, RiskMeasure, eased, parse_risk
from quantail.settings import Settings


@dataclass(frozen=True)
class Attitude:
    """The measures of the actions taken in training, of the target's a*, and of evaluation."""

    behaviour: RiskMeasure
    target: RiskMeasure
    evaluation: RiskMeasure

    def at(self, share: float) -> "Attitude":
        """With η of training so far on its way from neutral to its own value; 1 is there."""
        return replace(self, behaviour=eased(self.behaviour, share), target=eased(self.target, share))


PARTS = ("behaviour", "target", "evaluation")


def attitude_of(settings: Settings, own: RiskMeasure, origin: Origin | None = None) -> Attitude:
    """What the settings ask for, where `own` is the measure that their `risk` names.

    `origin` says which file gave the settings, where one did.
    """
    found = Attitude(*(_measure(settings, part, own, origin) for part in PARTS))
    if settings.risk_steps:
        for part in (found.behaviour, found.target):
            if not isinstance(part, Neutral) and part.neutral_eta is None:
                raise QuantailError(
                    "risk_steps takes a measure that has a way to neutral, cpw, wang, pow or cvar, "
                    f"not {part}."
                )
        if isinstance(found.behaviour, Neutral) and isinstance(found.target, Neutral):
            raise QuantailError("risk_steps has no effect while behaviour and target are neutral.")
    return found


def with_plain_risks(settings: Settings, own: RiskMeasure, attitude: Attitude) -> Settings:
    """The settings with every measure in its one text form, as results will name it."""
    parts = {f"{part}_risk": str(measure) for part, measure in vars(attitude).items()}
    given = {name: text for name, text in parts.items() if getattr(settings, name)}
    return settings.with_changes(given | {"risk": str(own)})


def _measure(settings: Settings, part: str, own: RiskMeasure, origin: Origin | None) -> RiskMeasure:
    text: str = getattr(settings, f"{part}_risk")
    try:
        return parse_risk(text, origin) if text else own
    except QuantailError as error:
        raise QuantailError(f"{part}_risk: {error}") from error


def described(settings: Settings) -> str:
    """The attitude in words: `cvar:0.1`, or `cvar:0.1, evaluation neutral`."""
    parts = {part: getattr(settings, f"{part}_risk") for part in PARTS}
    words = [f"{part} {text}" for part, text in parts.items() if text and text != settings.risk]
    if settings.risk_steps:
        words.append(f"eased in over {settings.risk_steps:,} steps")
    return ", ".join([settings.risk, *words])

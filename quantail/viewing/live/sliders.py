"""The sliders of the page: each risk measure, and the range of its parameter η."""

from dataclasses import dataclass

from quantail.risk import MEASURES, Neutral, RiskMeasure, parse_risk
from quantail.validation import number, one_of


@dataclass(frozen=True)
class Slider:
    """A slider for η: its range, its step, its initial value, and the labels of its ends."""

    least: float
    most: float
    step: float
    start: float
    left: str
    right: str


SLIDERS = {
    "cvar": Slider(0.01, 1.0, 0.01, 0.1, "risk-averse", "neutral"),
    "wang": Slider(-3.0, 3.0, 0.05, -0.75, "risk-averse", "risk-seeking"),
    "pow": Slider(-5.0, 5.0, 0.1, -2.0, "risk-averse", "risk-seeking"),
    "cpw": Slider(0.3, 1.5, 0.01, 0.71, "less weight on the tails", "more"),
    "norm": Slider(1, 30, 1, 3, "neutral", "tails ignored"),
    "mean-std": Slider(-3.0, 3.0, 0.05, 1.0, "risk-seeking", "risk-averse"),
    "entropic": Slider(-5.0, 5.0, 0.05, 1.0, "risk-seeking", "risk-averse"),
}


OWN = "the run's own"  # name of a custom measure of the run


def measures(own: RiskMeasure) -> list[dict[str, object]]:
    """Return every measure as the page shows it, and the run's own if it is a custom one."""
    known: list[dict[str, object]] = [
        {
            "name": name,
            "summary": measure.summary,
            "slider": vars(SLIDERS[name]) if name in SLIDERS else None,
        }
        for name, measure in MEASURES.items()
        if name in SLIDERS or measure.is_neutral
    ]
    others: list[dict[str, object]] = (
        []
        if own.name in SLIDERS or own.is_neutral
        else [{"name": OWN, "summary": own.label, "slider": None}]
    )
    return [*known, *others]


def make_measure(name: object, eta: object) -> RiskMeasure:
    """Return the measure that the page asks for."""
    known = one_of("risk", name, ["neutral", *SLIDERS])
    return Neutral() if known == "neutral" else parse_risk(f"{known}:{number('η', eta)}")

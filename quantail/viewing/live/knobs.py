"""What the page offers to turn: each risk measure, and the range of its η."""

from dataclasses import dataclass

from quantail.errors import QuantailError
from quantail.risk import MEASURES, Neutral, RiskMeasure, parse_risk


@dataclass(frozen=True)
class Knob:
    """A slider: from one η to another, where it starts, and what its ends mean."""

    least: float
    most: float
    step: float
    start: float
    left: str
    right: str


KNOBS = {
    "cvar": Knob(0.01, 1.0, 0.01, 0.1, "careful", "neutral"),
    "wang": Knob(-3.0, 3.0, 0.05, -0.75, "careful", "bold"),
    "pow": Knob(-5.0, 5.0, 0.1, -2.0, "careful", "bold"),
    "cpw": Knob(0.3, 1.5, 0.01, 0.71, "tails count less", "more"),
    "norm": Knob(1, 30, 1, 3, "neutral", "tails forgotten"),
}


OWN = "the run's own"  # where it is a map of the user's


def measures(own: RiskMeasure) -> list[dict[str, object]]:
    """Every measure as the page shows it, and the run's own if it is another."""
    known: list[dict[str, object]] = [
        {"name": name, "summary": measure.summary, "knob": vars(KNOBS[name]) if name in KNOBS else None}
        for name, measure in MEASURES.items()
    ]
    others: list[dict[str, object]] = (
        [] if own.name in MEASURES else [{"name": OWN, "summary": str(own), "knob": None}]
    )
    return [*known, *others]


def turned(name: object, eta: object) -> RiskMeasure:
    """The measure that the page asks for."""
    if name == "neutral":
        return Neutral()
    if not isinstance(name, str) or name not in KNOBS or not isinstance(eta, int | float):
        raise QuantailError(f"risk takes neutral or one of {', '.join(KNOBS)} with a number.")
    return parse_risk(f"{name}:{eta}")

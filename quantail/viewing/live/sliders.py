"""The risk measures of the page, with their sliders."""

from quantail import registry
from quantail.risk import RiskMeasure, parse_risk
from quantail.validation import number, one_of

OWN = "the run's own"  # name of a measure of the run that the page does not list


def listed() -> dict[str, type[RiskMeasure]]:
    """Return the measures that the page lists, by name: those with a slider, and the mean."""
    known: dict[str, type[RiskMeasure]] = registry.parts("risk")
    return {name: one for name, one in known.items() if one.slider or one.is_neutral}


def name_of(risk: RiskMeasure) -> str:
    """Return the name under which the page lists a measure, whatever its η is."""
    return next((name for name, one in listed().items() if type(risk) is one), OWN)


def measures(own: RiskMeasure) -> list[dict[str, object]]:
    """Return every measure as the page shows it, and the run's own if it is another one."""
    known: list[dict[str, object]] = [
        {"name": name, "summary": one.summary, "slider": vars(one.slider) if one.slider else None}
        for name, one in listed().items()
    ]
    if name_of(own) == OWN:
        known.append({"name": OWN, "summary": own.label, "slider": None})
    return known


def make_measure(name: object, eta: object) -> RiskMeasure:
    """Return the measure that the page asks for."""
    known = listed()
    text = one_of("risk", name, known)
    return parse_risk(f"{text}:{number('η', eta)}" if known[text].slider else text)

"""Risk measures from their text form: `cvar:0.25`, `neutral`, `prospect:2.25,0`, `module:function`."""

from typing import Any

from quantail import registry
from quantail.errors import QuantailError, did_you_mean
from quantail.risk.distortions import CPW, Custom, CVaR, Neutral, Norm, Pow, Wang
from quantail.risk.measures import Named, RiskMeasure, TauMap, form_of
from quantail.risk.utilities import CustomUtility, Entropic, ExpUtility, MeanStd, Prospect
from quantail.trust import UTILITY, Origin, import_named

MEASURES: dict[str, type[RiskMeasure]] = {
    measure.name: measure
    for measure in (Neutral, CPW, Wang, Pow, CVaR, Norm, MeanStd, Entropic, ExpUtility, Prospect)
}


def parse_risk(risk: str | RiskMeasure | TauMap, origin: Origin | None = None) -> RiskMeasure:
    """Return the risk measure of a text, or of a function that maps quantile fractions τ to [0, 1].

    Args:
        risk: A text such as "cvar:0.1", a `RiskMeasure`, or a function of τ. As a text,
            `module:function` is such a function, `utility:module:function` a utility of returns, and
            `module:Class` or `module:Class:0.1,3` a whole measure.
        origin: The file that gave the text, whose modules the user must trust. Without it, the user gave
            the text, and any module is imported.
    """
    if isinstance(risk, RiskMeasure):
        return risk
    if not isinstance(risk, str):
        if not callable(risk):
            raise QuantailError(f"risk takes a text such as 'cvar:0.25' or a map of τ, not {risk!r}.")
        return Custom(risk)
    text = risk.strip()
    name, _, parameter = text.partition(":")
    if name.lower() in MEASURES:
        return _made(text, MEASURES[name.lower()], parameter)
    if registry.is_known("risk", name):
        return _made(text, registry.find("risk", name), parameter)
    if text.startswith(UTILITY):
        module, _, attribute = parameter.partition(":")
        return CustomUtility(_imported(text, module, attribute, origin), text)
    if parameter.isidentifier() or (parameter and _numbers(parameter) is None):
        attribute, _, numbers = parameter.partition(":")
        return _from_outside(_imported(text, name, attribute, origin), text, numbers)
    known = ", ".join(form_of(one, measure) for one, measure in _all().items())
    raise QuantailError(
        f"unknown risk {risk!r}: it takes {known}, utility:module:function, module:Class "
        f"or module:function.{did_you_mean(name, _all())}"
    )


def _all() -> dict[str, type[RiskMeasure]]:
    return registry.parts("risk")


def _made(text: str, measure: type[RiskMeasure], parameter: str) -> RiskMeasure:
    """Return a measure from the numbers behind its name."""
    numbers = _numbers(parameter) if parameter else ()
    try:
        if numbers is not None:
            return measure(*numbers)
    except TypeError:  # too many numbers, or too few
        pass
    name = text.removesuffix(f":{parameter}")
    if measure.takes:
        raise QuantailError(f"risk {text!r}: {form_of(name, measure)} takes {measure.takes}.")
    form = form_of(name, measure)
    raise QuantailError(
        f"risk {text!r}: {name} takes {'no number' if form == name else f'numbers, {form}'}."
    )


def _from_outside(found: Any, text: str, numbers: str) -> RiskMeasure:
    """Return a measure from what `module:name` is: a class, a measure, or a map of τ."""
    if isinstance(found, type) and issubclass(found, RiskMeasure):
        return _made(text, found, numbers)
    if numbers:
        raise QuantailError(f"risk {text!r}: only a class of measures takes numbers.")
    if isinstance(found, RiskMeasure):
        return Named(found, text)
    return Custom(found, text)


def _imported(text: str, module: str, attribute: str, origin: Origin | None) -> Any:
    if registry.is_known("risk", f"{module}:{attribute}"):
        return registry.find("risk", f"{module}:{attribute}")
    if origin is not None and "<" not in attribute:  # a lambda cannot be imported, trusted or not
        origin.require(module)
    try:
        if "<" in attribute:
            raise ImportError("a lambda and a function within another have no name to import")
        found: Any = import_named(module, origin)
        for part in attribute.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise QuantailError(
            f"risk {text!r} cannot be imported ({error}): give a measure such as cvar:0.25, "
            "or module:function, or pass the function itself from Python."
            f"{did_you_mean(module, MEASURES)}"
        ) from error
    if not callable(found) and not isinstance(found, RiskMeasure):
        raise QuantailError(f"risk {text!r} is not a function of τ or a risk measure.")
    return found


def _numbers(text: str) -> tuple[float, ...] | None:
    """Return the numbers of `2.25,0`; None where the text is something else."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        return None

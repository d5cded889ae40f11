"""Formulas as MathML, so that the site needs no script to show them."""

import re
from html import unescape
from xml.sax.saxutils import quoteattr

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

# What pymdownx.arithmatex writes with `generic`.
FORMULA = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\s*'
    r"(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\])\s*</(?P=tag)>",
    re.DOTALL,
)
CODE = re.compile(r"<(code|pre|math)\b.*?</\1>|<[^>]*>", re.DOTALL)  # where a backslash is one
# The converter does not know these.
ARGMAX = re.compile(r"\\operatorname\*?\{arg(?: |\\,)?(max|min)\}|\\arg ?\\(max|min)(?![a-z])")
# Signs that it takes for identifiers, whose spacing is another one.
OPERATORS = {
    "<mi>&#x0007E;</mi>": "<mo>∼</mo>",
    "<mi>:</mi><mo>&#x0003D;</mo>": "<mo>≔</mo>",
    "<mi>&#x02032;</mi>": "<mo>&#x02032;</mo>",
    '<mo stretchy="false">&#x0007C;</mo>': '<mo stretchy="false" lspace="0.06em" rspace="0.06em">|</mo>',
}


def to_mathml(html: str, page: str) -> str:
    """Return the HTML of a page with MathML in place of LaTeX."""

    def change(match: re.Match[str]) -> str:
        block = match["block"] is not None
        latex = unescape(match["block"] if block else match["inline"]).strip()
        mathml = mathml_of(latex, "block" if block else "inline", page)
        return f'<{match["tag"]} class="arithmatex">{mathml}</{match["tag"]}>'

    done = FORMULA.sub(change, html)
    if left := re.search(r"\\[A-Za-z]{2,}.{0,40}", CODE.sub("", done)):
        raise PluginError(
            f"{page} has a formula that is not read as one, near {left[0]!r}: \\( … \\) stands within a "
            "line, and \\[ … \\] is a paragraph of its own."
        )
    return done


def mathml_of(latex: str, display: str, page: str) -> str:
    """Return a formula as MathML; raise an error that names the page if that fails."""
    try:
        mathml = convert(ARGMAX.sub(_argmax, latex), display=display)
    except Exception as error:
        raise PluginError(f"{page} has a formula that cannot be read, {latex!r}: {error!r}") from error
    if unknown := re.search(r"\\[A-Za-z]+", unescape(mathml)):
        raise PluginError(f"{page} has a formula with {unknown[0]}, which is not known here: {latex!r}")
    for found, better in OPERATORS.items():
        mathml = mathml.replace(found, better)
    return mathml.replace("<math ", f"<math alttext={quoteattr(latex)} ", 1)


def _argmax(match: re.Match[str]) -> str:
    return f"\\text{{arg {match[1] or match[2]}}}"

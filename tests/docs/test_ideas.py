"""The demonstrations in docs/ideas print what the pages say, and the numbers in their text are these."""

import contextlib
import io
import re
from pathlib import Path

import pytest

IDEAS = Path(__file__).parents[2] / "docs" / "ideas"
PAGES = sorted(page.name for page in IDEAS.glob("*.md"))
SNIPPET = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
WITH_OUTPUT = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

# Numbers that the text of a page takes from an output: in the text, and as the output has them.
TOLD = {
    "architectures.md": [],
    "open-questions.md": [
        ("side road and the bridge (4.75)", "side road  bridge      4.75 "),
        ("highway and the bridge (3.00)", "highway    bridge      4.69                 3.00 "),
        ("side road and the ferry (−1.40)", "-1.40        -1.40\n"),
        ("worth 2.40 instead of 3.00", "highway    ferry       4.35                 2.40 "),
        ("−2.40 instead of −1.40", "        -2.40\n"),
        ("is −3.4 and that of the bridge is −4", ""),  # one decision, by hand in the test below
        ("worse by about 1.7", "gamble is worth 11.68"),
        ("sure return of 1.5", "of 4, 20 and 200 quantiles 2.00"),
    ],
    "pitfalls.md": [],
    "return-distributions.md": [("a single value near −5.5", "mean -5.536")],
    "theories-of-risk.md": [],
}


def text_of(page):
    return (IDEAS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_every_snippet_prints_the_output_below_it(page):
    """The snippets of a page share their names, in the order of the page."""
    text, names = text_of(page), {"__name__": "page"}
    assert len(SNIPPET.findall(text)) == len(WITH_OUTPUT.findall(text)) > 0
    for code, expected in WITH_OUTPUT.findall(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page, "exec"), names)
        assert_same_output(printed.getvalue(), expected)


def assert_same_output(printed, expected):
    """The words are the same, and numbers differ by one in their last digit at most."""
    assert NUMBER.sub("#", printed).split() == NUMBER.sub("#", expected).split()
    for ours, theirs in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
        digits = len(theirs.partition(".")[2])
        assert float(ours) == pytest.approx(float(theirs), abs=1.01 * 10**-digits)


@pytest.mark.parametrize("page", PAGES)
def test_numbers_in_the_text_are_those_of_the_outputs(page):
    text = text_of(page)
    outputs = "".join(output for _, output in WITH_OUTPUT.findall(text))
    for told, printed in TOLD[page]:
        assert told in " ".join(text.split()), told
        assert printed in outputs, printed


def test_at_the_junction_the_ferry_has_the_better_tail():
    from quantail.distributions import ReturnDistribution
    from quantail.risk import CVaR

    ferry = ReturnDistribution.of([3.0, -5.0], [0.8, 0.2])
    bridge = ReturnDistribution.of([5.0, -4.0], [0.75, 0.25])
    assert float(CVaR(0.25).value(ferry)) == pytest.approx(-3.4)
    assert float(CVaR(0.25).value(bridge)) == pytest.approx(-4.0)


def test_every_picture_of_a_page_exists_in_light_and_dark():
    for page in PAGES:
        for name in re.findall(r"\]\(\.\./images/(ideas-[\w-]+)\.svg\)", text_of(page)):
            for stem in (name, f"{name}-dark"):
                assert (IDEAS.parent / "images" / f"{stem}.svg").exists(), stem

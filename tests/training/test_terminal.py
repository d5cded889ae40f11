"""The words in which the terminal sums up a run."""

from pathlib import Path

import pytest

from quantail.training.loggers.terminal import summary_lines
from quantail.training.progress import Summary
from quantail.training.scores import Scores


def summary(risk):
    scores = Scores({"random": 1.0, "final": 9.0, "best": 9.0}, {}, best_steps=500)
    scores.values = scores.means if risk == "neutral" else {"random": 0.0, "final": 4.0, "best": 5.0}
    seconds = {"learning": 1.0, "evaluation": 1.0}
    return Summary(Path("run"), 500, 500, 500, risk, False, scores, seconds, 10, "")


@pytest.mark.parametrize(
    ("risk", "best"), [("neutral", "mean return 9.00"), ("cvar:0.1", "cvar:0.1 5.00")]
)
def test_the_best_value_is_named_as_what_it_is(risk, best):
    lines = summary_lines(summary(risk))
    assert f"best     {best} after 500 steps, kept in run/checkpoints/000000500" in lines

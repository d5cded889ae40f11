"""What every figure keeps to: colours, words that are not cut off, and legends beside the plots."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from quantail.experiments import changed, read_results, read_study
from quantail.runs.history import group_runs, read_history
from quantail.viewing.figures import (
    learning_curves,
    profiles,
    quantile_functions,
    return_histograms,
    time_shares,
)
from quantail.viewing.moments import Moment
from quantail.viewing.return_figure import draw_returns
from quantail.viewing.studies.draw import FIGURES
from quantail.viewing.style import DARK, LIGHT, colour, line_style, new_figure, styled, theme
from quantail.viewing.words import place_legend, set_heading, text_width, wrapped
from tests.helpers.agents import agent
from tests.helpers.fakes import fake_results, rising

LONG = "an agent with a long name, learning_rate 0.0001, embedding_activation sigmoid"
# What people with a colour vision deficiency see (Machado, Oliveira and Fernandes, 2009), in linear RGB.
VISION = {
    "all colours": np.eye(3),
    "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]


def linear(name):
    parts = np.array(to_rgb(name))
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """Convert linear RGB to CIELAB, in which distances are about those that people see."""
    xyz = np.array(TO_XYZ) @ np.clip(rgb, 0, 1) / np.sum(TO_XYZ, axis=1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("one", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_differ_for_every_reader_and_from_the_ground(one, vision):
    seen = [lab(np.array(VISION[vision]) @ linear(name)) for name in (*one.series, one.ground)]
    for first, second in itertools.combinations(seen, 2):
        assert np.linalg.norm(first - second) > 15


@pytest.mark.parametrize("one", [LIGHT, DARK], ids=["light", "dark"])
def test_words_have_enough_contrast(one):
    weights = np.array([0.2126, 0.7152, 0.0722])
    for name in (one.ink, one.quiet, one.warning):
        low, high = sorted(linear(both) @ weights for both in (name, one.ground))
        assert (high + 0.05) / (low + 0.05) > 4.5


def test_the_first_28_series_differ_in_colour_or_dashes():
    assert len({str(line_style(index)) for index in range(28)}) == 28


def test_the_theme_is_light_except_in_a_dark_context():
    assert theme() is LIGHT
    with styled(dark=True):
        assert (theme(), colour(0)) == (DARK, DARK.series[0])
    assert theme() is LIGHT


@pytest.mark.parametrize("text", [LONG, "studies/a/very/long/path/" * 4, "x" * 150, "short", ""])
def test_wrapped_text_is_complete_and_no_line_is_too_wide(text):
    lines = wrapped(text, 1.6, 9).split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert all(text_width(line, 9) <= 1.6 for line in lines)


def groups_of(cartpoles, label):
    groups = group_runs([read_history(cartpoles / name) for name in ("iqn-0", "iqn-1", "dqn-0")])
    return [replace(group, label=f"{group.label} {label}".strip()) for group in groups]


def study_figure(path, name, title="", **changes):
    study = changed(read_study(name, small=True), **changes)
    study = replace(study, title=title or study.title)
    results = read_results(fake_results(path / "study", study, rising, share=0.8).path)
    return FIGURES[results.study.figure](results)


def seaquest():
    mine = agent("MinAtar/Seaquest-v1", "minatar", policy_samples=2, head_size=16)
    return mine, np.zeros(mine.observation.tree.input_shape, np.float32)


def draw_actions():
    mine, observation = seaquest()
    names = tuple(f"upright fire {number}" for number in range(mine.actions.count))
    return quantile_functions(mine, Moment(7, observation, None, "actions differ most", names))


def draw_seaquest_returns():
    mine, observation = seaquest()
    return draw_returns(mine.returns(observation))


CASES = {
    "one agent": lambda runs, path: learning_curves(groups_of(runs, "")[:1]),
    "agents": lambda runs, path: learning_curves(groups_of(runs, "")),
    "long names": lambda runs, path: learning_curves(groups_of(runs, LONG)),
    "histograms": lambda runs, path: return_histograms({"a": np.arange(9.0), LONG: np.arange(40.0)}),
    "actions": lambda runs, path: draw_actions(),
    "returns": lambda runs, path: draw_seaquest_returns(),
    "time": lambda runs, path: time_shares({"a": {"learning": 1.0}, "runs/" * 12: {"acting": 2.0}}),
    "profiles": lambda runs, path: profiles({"a": np.array([[1.0, 2.0]]), LONG: np.array([[0.5, 1]])}),
    "2 × 3 study": lambda runs, path: study_figure(
        path,
        "risk",
        games=[f"MinAtar/{game}-v1" for game in ("Asterix", "Breakout", "Freeway", "Seaquest")]
        + ["CartPole-v1", "Quantail/WindyCliff-v0"],
    ),
    "aggregate": lambda runs, path: study_figure(path, "atari57"),
    "violins": lambda runs, path: study_figure(path, "architecture"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_legend_is_whole_and_outside_of_all_plots(cartpoles, tmp_path, name):
    with styled():
        figure = CASES[name](cartpoles, tmp_path)
        figure.draw_without_rendering()
    (legend,) = figure.legends
    box, page = legend.get_window_extent(), figure.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1
    assert page.y0 <= box.y0 < box.y1 <= page.y1
    assert not any(axes.get_legend() for axes in figure.axes)
    for axes in figure.axes:
        assert not box.overlaps(axes.get_tightbbox()), axes.get_title()


@pytest.mark.parametrize("name", CASES)
def test_no_words_are_cut_off_and_plots_keep_their_space(cartpoles, tmp_path, name):
    with styled():
        figure = CASES[name](cartpoles, tmp_path)
        figure.draw_without_rendering()
    page = figure.bbox
    texts = [
        one for axes in figure.axes for one in (axes._left_title, axes.xaxis.label, axes.yaxis.label)
    ]
    for text in (figure._suptitle, *figure.texts, *texts):
        if text is not None and text.get_text():
            box = text.get_window_extent()
            assert page.x0 <= box.x0 < box.x1 <= page.x1, text
            assert page.y0 <= box.y0 < box.y1 <= page.y1 + 1, text
    plots = [axes for axes in figure.axes if axes.axison]
    assert all(axes.get_position().height * page.height / figure.dpi > 0.3 for axes in plots)


def test_a_note_on_partial_results_does_not_lie_over_a_long_title(tmp_path):
    with styled():
        figure = study_figure(tmp_path, "risk", title=LONG * 3)
        figure.draw_without_rendering()
    (partial,) = [text for text in figure.texts if "PARTIAL" in text.get_text()]
    first_line = figure._suptitle.get_text().split("\n")[0]
    left = figure._suptitle.get_window_extent().x0 / figure.dpi
    end = left + text_width(first_line, figure._suptitle.get_fontsize())
    assert end < partial.get_window_extent().x0 / figure.dpi


def test_a_figure_grows_by_its_heading_and_its_legend():
    figure = new_figure(5, 3)
    axes = figure.subplots()
    for number in range(9):
        axes.plot([0, 1], label=f"{LONG} {number}")
    place_legend(figure, note="A note.")
    with_legend = figure.get_figheight()
    set_heading(figure, LONG * 2, LONG)
    assert 3 < with_legend < figure.get_figheight()
    assert place_legend(new_figure()) is None

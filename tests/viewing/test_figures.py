import numpy as np
import pytest
from matplotlib.colors import to_rgb

from quantail.envs import make
from quantail.runs.history import group_runs, read_history
from quantail.viewing import moments as moments_module
from quantail.viewing.figures import (
    learning_curves,
    metric_curves,
    new_metrics,
    profiles,
    quantile_functions,
    return_histograms,
)
from quantail.viewing.moments import Moment, find_moments
from quantail.viewing.style import DARK, LIGHT, ink_on, styled
from tests.helpers.agents import agent


def test_a_curve_is_the_mean_over_seeds_within_its_interval(cartpoles):
    (group,) = group_runs([read_history(cartpoles / name) for name in ("iqn-0", "iqn-1")])
    steps, means = group.curves()
    axes = learning_curves([group]).axes[0]
    assert axes.lines[0].get_xdata().tolist() == steps.tolist()
    assert axes.lines[0].get_ydata() == pytest.approx(means.mean(axis=0))
    assert axes.lines[1].get_ydata() == pytest.approx([np.mean([run.random for run in group.runs])] * 2)
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == pytest.approx(means.min())  # the interval of two seeds spans both
    assert heights.max() == pytest.approx(means.max())


def test_a_single_seed_has_a_curve_without_an_interval(cartpoles):
    figure = learning_curves(group_runs([read_history(cartpoles / "dqn-0")]))
    assert len(figure.axes[0].collections) == 0
    assert figure.legends[0].get_texts()[0].get_text() == "dqn (1 seed)"


def with_metrics(cartpoles, **metrics):
    """Return the groups of three runs that have reported these metrics; dqn lacks the last one."""
    groups = group_runs([read_history(cartpoles / name) for name in ("iqn-0", "iqn-1", "dqn-0")])
    for group in groups:
        for run in group.runs:
            run.metrics.update((name, np.array(values)) for name, values in metrics.items())
    groups[1].runs[0].metrics.popitem()
    return groups


def test_each_new_metric_has_a_panel_with_one_line_for_each_run_that_reported_it(cartpoles):
    spread, gap = np.arange(10.0), np.arange(10.0) ** 2
    groups = with_metrics(cartpoles, spread=spread, gap=gap)
    figure = metric_curves(groups)
    assert [axes.get_title() for axes in figure.axes] == ["spread", "gap"]
    first, second = ([line for line in axes.lines if len(line.get_xdata())] for axes in figure.axes)
    assert [line.get_color() for line in first] == [LIGHT.series[0], LIGHT.series[0], LIGHT.series[1]]
    assert [line.get_color() for line in second] == [LIGHT.series[0], LIGHT.series[0]]
    for lines, values in ((first, spread), (second, gap)):
        for line in lines:
            assert line.get_xdata().tolist() == list(range(20, 201, 20))
            assert line.get_ydata().tolist() == values.tolist()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["iqn (2 seeds)", "dqn (1 seed)"]


def test_a_metric_that_is_reported_now_and_then_is_one_line_through_its_points(cartpoles):
    sparse = np.full(10, np.nan)
    sparse[[4, 9]] = 1.0, 2.0
    line = metric_curves(with_metrics(cartpoles, sparse=sparse)).axes[0].lines[0]
    assert (line.get_xdata().tolist(), line.get_ydata().tolist()) == ([100, 200], [1.0, 2.0])


def test_standard_columns_and_metrics_without_a_value_are_not_new(cartpoles):
    assert new_metrics(with_metrics(cartpoles, never=np.full(10, np.nan), last=np.ones(10))) == ["last"]
    assert not new_metrics(group_runs([read_history(cartpoles / "iqn-0")]))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ["gap", "mine/with_a_rather_long_name$"])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 123456.0, 1e12])
def test_the_labels_of_metrics_do_not_overlap(cartpoles, count, name, scale):
    metrics = {f"{name}_{number}": scale * np.linspace(-1, 2, 10) for number in range(count)}
    with styled():
        figure = metric_curves(with_metrics(cartpoles, **metrics))
        figure.draw_without_rendering()
    texts = [*figure.legends[0].get_texts()]
    for axes in figure.axes[:count]:
        texts += [axes._left_title, axes.xaxis.label, axes.yaxis.get_offset_text()]
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    drawn = [text for text in texts if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in drawn]
    assert {*metrics, "steps", "iqn (2 seeds)"} <= {text for text, _ in boxes}
    width, height = figure.canvas.get_width_height()
    for index, (text, box) in enumerate(boxes):
        assert 0 <= box.x0 < box.x1 <= width, text
        assert 0 <= box.y0 < box.y1 <= height, text
        for other, second in boxes[:index]:
            assert not box.overlaps(second), (text, other)


def test_a_histogram_marks_the_mean_and_the_mean_of_the_worst_ten_percent():
    axes = return_histograms({"mine": np.arange(100.0)}).axes[0]
    assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([49.5, 4.5])
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1.0)


def test_the_worst_ten_percent_of_fifteen_episodes_are_one_and_a_half():
    axes = return_histograms({"mine": np.arange(15.0)}).axes[0]
    assert axes.lines[1].get_xdata()[0] == pytest.approx((1.0 * 0 + 0.5 * 1) / 1.5)
    assert "worst 10 % 0.3333" in axes.get_title()


@pytest.mark.parametrize("values", [[3.0, 3.0], [0.25, 0.25, 7.5], [1e6, -1e6, 0.0]])
def test_every_return_is_in_the_histogram(values):
    axes = return_histograms({"mine": np.array(values)}).axes[0]
    assert sum(bar.get_height() for bar in axes.patches) == pytest.approx(1.0)


def test_quantile_functions_are_drawn_against_tau_one_for_each_action():
    mine = agent()
    observation, _ = make("CartPole-v1", mine.config.environment).reset(seed=0)
    axes = quantile_functions(mine, Moment(0, observation, None)).axes[0]
    for line in axes.lines:
        action = int(line.get_label().split()[1].rstrip(","))
        taus = line.get_xdata()
        expected = np.sort(mine.quantiles(observation, taus)[:, action])
        assert line.get_ydata() == pytest.approx(expected, abs=1e-4)
    assert len(axes.lines) == 2


def test_curves_of_a_head_whose_quantiles_cross_are_sorted_and_the_figure_says_how_many_crossed():
    mine = agent()
    observation, _ = make("CartPole-v1", mine.config.environment).reset(seed=0)
    figure = quantile_functions(mine, Moment(0, observation, None))
    taus = figure.axes[0].lines[0].get_xdata()
    raw = mine.quantiles(observation, taus)
    crossed = (np.diff(raw, axis=0) < 0).mean()
    assert 0.01 < crossed < 1
    for line in figure.axes[0].lines:
        assert (np.diff(line.get_ydata()) >= 0).all()
    note = figure.legends[0].get_title().get_text()
    assert note == f"Curves are sorted: {100 * crossed:.0f} % of neighbouring quantiles crossed."


def test_the_curves_of_a_head_whose_quantiles_cannot_cross_need_no_note():
    figure = quantile_functions(agent(agent="c51"), Moment(0, np.zeros(4, np.float32), None))
    assert "crossed" not in figure.legends[0].get_title().get_text()


def test_every_action_has_a_name_and_a_line_of_its_own():
    mine = agent("ALE/Seaquest-v5", "atari-paper", policy_samples=2, head_size=16)
    observation, _ = make("ALE/Seaquest-v5", mine.config.environment).reset(seed=0)
    env = make("ALE/Seaquest-v5", mine.config.environment)
    names = tuple(env.action_names())
    figure = quantile_functions(mine, Moment(0, observation, None, actions=names))
    lines = figure.axes[0].lines
    assert len({(line.get_color(), str(line._dash_pattern)) for line in lines}) == 18
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [label.split(",")[0] for label in labels] == list(names)
    assert len({line.get_color() for line in lines[:6]}) == 6


def test_a_profile_is_the_share_above_each_threshold():
    axes = profiles({"mine": np.array([[0.5, 2.0], [0.5, 2.0]])}).axes[0]
    thresholds, shares = axes.lines[0].get_data()
    assert shares[thresholds < 0.5].tolist() == [1.0] * (thresholds < 0.5).sum()
    assert set(shares[(thresholds > 0.5) & (thresholds < 2.0)]) == {0.5}


def test_moments_are_where_values_differ_most_and_where_the_return_is_most_uncertain():
    mine = agent("MinAtar/Breakout-v1", "minatar")
    moments = find_moments(mine, seed=3)
    env = make("MinAtar/Breakout-v1", mine.config.environment)
    observation, _ = env.reset(seed=3)
    differences, spread, over = [], [], False
    taus = (np.arange(32) + 0.5) / 32
    while not over and len(differences) < 500:
        action = mine.act(observation)
        differences.append(np.ptp(mine.values(observation)))
        spread.append(mine.quantiles(observation, taus)[:, action].std())
        observation, _, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
    why = {moment.why: moment.step for moment in moments}
    decisive = next(step for reason, step in why.items() if "differ" in reason)
    uncertain = next(step for reason, step in why.items() if "certain" in reason)
    assert moments[0].step == 0
    assert decisive == int(np.argmax(differences))
    assert uncertain == int(np.argmax(spread))
    assert all(moment.picture is not None and moment.picture.dtype == np.uint8 for moment in moments)


def test_a_moment_can_have_several_reasons(monkeypatch):
    mine = agent("MinAtar/Breakout-v1", "minatar")
    monkeypatch.setattr(moments_module, "MAX_STEPS", 1)
    (moment,) = find_moments(mine, seed=3)
    assert (moment.step, moment.why) == (
        0,
        "the start, actions differ most, and return is most uncertain",
    )


def test_actions_have_the_names_that_the_environment_gives_them():
    mine = agent("MinAtar/Breakout-v1", "minatar")
    axes = quantile_functions(mine, find_moments(mine)[0]).axes[-1]
    names = {line.get_label().split(",")[0] for line in axes.lines}
    assert names == {"nothing", "left", "right"}


def test_a_profile_begins_at_the_lowest_score():
    lines = profiles({"mine": np.array([[-0.5, 2.0]])}).axes[0].lines
    assert lines[0].get_xdata()[0] == -0.5
    assert profiles({"mine": np.array([[0.5, 2.0]])}).axes[0].lines[0].get_xdata()[0] == 0


def test_random_play_is_in_the_legend(cartpoles):
    figure = learning_curves(group_runs([read_history(cartpoles / "dqn-0")]))
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["dqn (1 seed)", "random play"]


@pytest.mark.parametrize("ground", [*LIGHT.series, *DARK.series])
def test_text_on_a_colour_has_enough_contrast(ground):
    def luminance(colour):
        parts = np.array(to_rgb(colour))
        return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ (
            0.2126, 0.7152, 0.0722
        )  # fmt: skip

    light, dark = sorted((luminance(ground), luminance(ink_on(ground))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_an_agent_that_learns_only_the_mean_is_never_uncertain():
    moments = find_moments(agent("MinAtar/Breakout-v1", "minatar", agent="dqn"))
    assert not any("certain" in moment.why for moment in moments)

import itertools

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.text import Text

from quantail.evaluation.games import baselines, game_of
from quantail.experiments import changed, read_results, read_study, shipped
from quantail.experiments.scoring import best, late, scale_of, score
from quantail.risk import CVaR, Neutral, Norm, Wang
from quantail.viewing.studies import draw_study
from quantail.viewing.studies.distortions import distortions
from quantail.viewing.studies.draw import FIGURES
from quantail.viewing.studies.heatmap import LABEL_HEIGHT, LABELLED
from quantail.viewing.style import LIGHT, styled
from quantail.viewing.words import spread_labels
from tests.helpers.fakes import fake_results, rising


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def figure_of(folder):
    results = read_results(folder.path)
    with styled():
        return FIGURES[results.study.figure](results)


def human_share(shares):
    """Scores that rise linearly to these shares of the human score, by game."""

    def score(job, progress):
        base = baselines()[game_of(job.env)]
        return base.random + shares[job.env] * progress * (base.human - base.random)

    return score


@pytest.mark.parametrize("name", shipped())
def test_every_figure_is_drawn_from_results_alone_and_reproducibly(tmp_path, name):
    folder = fake_results(tmp_path / "study", read_study(name, small=True), rising)
    written = draw_study(folder.path)
    assert {path.suffix for path in written} == {".png", ".svg", ".csv"}
    before = {path: path.read_bytes() for path in written if path.suffix != ".png"}
    assert draw_study(folder.path) == written
    assert {path: path.read_bytes() for path in before} == before
    assert not any("PARTIAL" in word for word in texts(figure_of(folder)))


@pytest.mark.parametrize("name", shipped())
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_a_figure_of_partial_results_says_how_many_runs_are_done(tmp_path, name, share):
    study = read_study(name, small=True)
    folder = fake_results(tmp_path / "study", study, rising, share=share)
    jobs = len(study.jobs())
    assert f"PARTIAL: {int(share * jobs)} OF {jobs} RUNS DONE" in texts(figure_of(folder))
    assert draw_study(folder.path)


def test_the_heat_map_shows_the_mean_of_each_cell_and_the_references(tmp_path):
    def by_samples(job, progress):
        if job.config.head.name == "implicit":
            return job.config.head.config.online_samples + job.config.head.config.target_samples / 100
        return {"dqn": 1.25, "qr-dqn": 3.75}[job.config.run.agent]

    folder = fake_results(tmp_path / "study", read_study("samples", small=True), by_samples)
    said = texts(figure_of(folder))
    for online in (1, 8, 32, 64):
        for target in (1, 8, 32, 64):
            assert said.count(f"{online + target / 100:.2f}") == 2  # early and late
    assert said.count("DQN\n1.25") == said.count("QR-DQN\n3.75") == 2
    # The colours match the numbers: N increases upwards, N′ to the right.
    expected = [[n + m / 100 for m in (1, 8, 32, 64)] for n in (1, 8, 32, 64)]
    pictures = [axes.images[0].get_array() for axes in figure_of(folder).axes if axes.images]
    assert len(pictures) == 2
    for picture in pictures:
        np.testing.assert_allclose(picture, expected)


def test_a_heat_map_names_missing_references_and_its_bar_is_in_percent(tmp_path):
    study = changed(read_study("samples", small=True), games=["Breakout", "Asterix"])
    part = fake_results(
        tmp_path / "part",
        study,
        rising,
        there=lambda job: (
            not job.combination.reference or (job.config.run.agent == "dqn" and "Ast" in job.env)
        ),
    )
    said = texts(figure_of(part))
    seeds = study.seeds
    assert sum(f"DQN: {seeds} of {2 * seeds} runs, QR-DQN: not yet" in word for word in said) == 2
    whole = figure_of(fake_results(tmp_path / "whole", study, rising))
    assert not any("not yet" in word for word in texts(whole))
    whole.draw_without_rendering()
    bars = [axes for axes in whole.axes if not axes.images]
    for bar in bars:
        ticks = [label.get_text() for label in bar.get_yticklabels()]
        assert ticks
        assert all(tick.endswith("%") for tick in ticks)


def test_labels_beside_a_colour_bar_do_not_overlap_and_stay_within_it():
    for values in ([0.0, 0.01, 0.02], [0.5], [0.98, 0.99, 1.0], [0.0, 0.5, 0.55, 1.0]):
        places = spread_labels(values, LABEL_HEIGHT, *LABELLED)
        assert all(b - a > 0.12 for a, b in itertools.pairwise(places))
        assert min(places) >= 0
        assert max(places) < 1
    assert spread_labels([], LABEL_HEIGHT, *LABELLED).size == 0


def test_early_and_late_are_the_first_and_the_last_part_of_training(tmp_path):
    study = changed(read_study("samples", small=True))
    folder = fake_results(tmp_path / "study", study, lambda job, progress: 100 * progress, points=30)
    trace = read_results(folder.path).traces[0]
    assert trace.early(0.1) == pytest.approx(np.mean([100 / 30, 200 / 30, 10]))
    assert trace.late(0.1) == pytest.approx(np.mean([2800 / 30, 2900 / 30, 100]))


def test_a_score_is_the_mean_over_games_of_the_mean_over_seeds(tmp_path):
    ends = {"ALE/Pong-v5": 1.0, "ALE/Breakout-v5": 2.0, "ALE/Qbert-v5": 9.0}
    by_game = human_share(ends)

    def by_seed(job, progress):
        base = baselines()[game_of(job.env)]
        more = {0: 0.0, 1: 1.0, 2: 5.0}[job.seed]
        return by_game(job, 1.0) + more * (base.human - base.random)

    study = changed(read_study("atari57"), games=list(ends), agents=["iqn"], seeds=3)
    results = read_results(fake_results(tmp_path / "study", study, by_seed).path)
    found = score(results, scale_of(results), results.configs[0], late(results))
    assert found.value == pytest.approx(100 * (4 + 2))  # of games (1, 2, 9), of seeds (0, 1, 5)
    assert (found.runs, found.planned) == (9, 9)


def test_best_is_the_highest_evaluation_of_a_finished_run(tmp_path):
    def falling(job, progress):
        return 10 if progress == 0.5 else progress

    folder = fake_results(tmp_path / "study", read_study("risk", small=True), falling, share=0.5)
    traces = read_results(folder.path).traces
    assert {best(trace) for trace in traces if trace.done} == {10.0}
    (unfinished,) = [trace for trace in traces if not trace.done]
    assert np.isnan(best(unfinished))


def test_violins_mark_the_preferred_combination_in_every_panel(tmp_path):
    folder = fake_results(tmp_path / "study", read_study("architecture", small=True), rising)
    figure = figure_of(folder)
    for axes in figure.axes:
        dots = [c for c in axes.collections if to_hex(c.get_facecolor()[0]) == LIGHT.ink]
        shown = [c for c in dots if len(c.get_offsets())]
        assert len(shown) == 1
    assert "QR-DQN" in texts(figure)


def test_curves_have_a_panel_for_each_game_and_a_mean_with_an_interval_for_each_measure(tmp_path):
    def by_seed(job, progress):
        return progress * (1 + job.seed)

    folder = fake_results(tmp_path / "study", read_study("risk", small=True), by_seed)
    figure = figure_of(folder)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Breakout", "SpaceInvaders"]
    axes = figure.axes[1]
    thick = [line for line in axes.lines if line.get_linewidth() == 1.8]
    assert (len(thick), len(axes.collections)) == (6, 6)
    steps, means = thick[0].get_data()
    np.testing.assert_allclose(means, 1.5 * steps / steps[-1])
    for band in axes.collections:  # the interval of two seeds spans both
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx(2)
        assert heights.min() == pytest.approx(steps[0] / steps[-1])
    assert any("95 % interval of the mean" in word for word in texts(figure))


def test_one_seed_has_no_interval(tmp_path):
    study = changed(read_study("risk", small=True), seeds=1)
    figure = figure_of(fake_results(tmp_path / "study", study, rising))
    assert not any(axes.collections for axes in figure.axes)
    assert not any("interval" in word for word in texts(figure))


def test_atari57_shows_mean_and_median_of_human_normalised_scores(tmp_path):
    score = human_share({"ALE/Pong-v5": 0.5, "ALE/Breakout-v5": 1.0, "ALE/Qbert-v5": 3.0})
    study = changed(read_study("atari57"), games=["Pong", "Breakout", "Qbert"], seeds=1)
    folder = fake_results(tmp_path / "study", study, score)
    figure = figure_of(folder)
    ends = [axes.lines[0].get_ydata()[-1] for axes in figure.axes[:2]]
    np.testing.assert_allclose(ends, [150, 100])
    assert (figure.axes[0].get_ylabel(), len(figure.axes)) == ("human-normalised score", 2)
    # The paper's tables are files, too.
    tables = {path.stem: path.read_text() for path in draw_study(folder.path) if path.suffix == ".csv"}
    assert tables.keys() == {"summary", "aggregates", "raw", "scores"}
    assert "\nmedian,iqn,100.0%," in tables["aggregates"]
    assert "\nmedian,IQN (paper)," in tables["aggregates"]  # each row names its aggregate
    assert "pong" in tables["raw"].lower()


def test_the_label_of_an_aggregate_fits_its_axis(tmp_path):
    folder = fake_results(tmp_path / "study", read_study("atari57", small=True), rising)
    figure = figure_of(folder)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.yaxis.label.get_window_extent().height < axes.get_window_extent().height
    assert any("0% random play, 100% best seen here" in word for word in texts(figure))


FOUR = {"ALE/Atlantis-v5": 60.0, "ALE/Pong-v5": 1.0, "ALE/Breakout-v5": 1.0, "ALE/Qbert-v5": 1.0}


def four_games(path, there):
    study = changed(read_study("atari57"), games=list(FOUR), agents=["iqn"], seeds=2)
    return figure_of(fake_results(path / "study", study, human_share(FOUR), there=there))


def thick_and_thin(axes):
    return [[one for one in axes.lines if one.get_linewidth() == wide] for wide in (1.8, 0.7)]


def test_the_thick_line_is_the_mean_of_complete_seeds_only(tmp_path):
    figure = four_games(tmp_path, lambda job: job.seed == 0 or "Atlantis" in job.env)
    (thick,), thin = thick_and_thin(figure.axes[0])
    assert thick.get_ydata()[-1] == pytest.approx(1575)
    np.testing.assert_allclose([line.get_ydata()[-1] for line in thin], [6000])
    said = texts(figure)
    assert "iqn (1 of 2 seeds complete, thin: 1 of 4 games)" in said
    assert "mean over 1 to 4 of 4 games" in said


def test_a_game_in_progress_does_not_shorten_a_curve(tmp_path):
    def there(job):
        return 0.5 if job.seed and "Pong" in job.env else 1.0

    figure = four_games(tmp_path, there)
    (thick,), thin = thick_and_thin(figure.axes[0])
    assert [len(line.get_xdata()) for line in (thick, *thin)] == [20, 20]
    assert thick.get_ydata()[-1] == pytest.approx(1575)
    assert thin[0].get_ydata()[-1] == pytest.approx(6200 / 3)
    assert "iqn (1 of 2 seeds complete, thin: 3 of 4 games)" in texts(figure)


def test_without_a_complete_seed_there_is_no_thick_line_and_the_title_counts_games(tmp_path):
    figure = four_games(tmp_path, lambda job: "Pong" in job.env or "Qbert" in job.env)
    (thick,), thin = thick_and_thin(figure.axes[0])
    assert (len(thick.get_xdata()), len(thin)) == (0, 2)
    assert "iqn (0 of 2 seeds complete, thin: 2 of 4 games)" in texts(figure)
    assert "median over 2 of 4 games" in texts(figure)


def test_a_seed_in_progress_does_not_shorten_the_mean_of_finished_ones(tmp_path):
    study = changed(read_study("risk", small=True), measures=["neutral"])
    folder = fake_results(tmp_path / "s", study, rising, there=lambda job: 0.5 if job.seed else 1)
    thick = [line for line in figure_of(folder).axes[0].lines if line.get_linewidth() == 1.8]
    assert [len(line.get_xdata()) for line in thick] == [0, 20]  # the first is for the legend


def test_distortions_have_mass_one_and_the_mean_of_the_risk_measure():
    measures = [Neutral(), Wang(-0.75), Wang(0.75), CVaR(0.1), Norm(3)]
    figure = distortions(measures)
    means = {}
    for axes, measure in zip(figure.axes, measures, strict=False):
        line, mean = axes.lines
        x, density = line.get_data()
        assert np.trapezoid(density, x) == pytest.approx(1.0, abs=0.01)
        means[str(measure)] = mean.get_xdata()[0]
        assert density.max() > 0.4 * axes.get_ylim()[1]  # every density fills its panel
    # The mean of z = F⁻¹(β(τ)) over a fine grid of τ.
    taus = (np.arange(200_000) + 0.5) / 200_000
    x = figure.axes[0].lines[0].get_xdata()
    cdf = np.cumsum(figure.axes[0].lines[0].get_ydata()) * (x[1] - x[0])
    for measure in measures:
        expected = np.interp(measure(taus), cdf, x).mean()
        assert means[str(measure)] == pytest.approx(expected, abs=0.05)

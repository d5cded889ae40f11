import itertools

import pytest

from quantail.experiments import changed, read_study, shipped
from quantail.experiments.folder import StudyFolder
from quantail.experiments.reading import FIGURES
from quantail.experiments.study import Study
from quantail.recipes import compose
from tests.helpers.studies import study_file

SIX = ["Asterix", "Assault", "Breakout", "MsPacman", "Qbert", "SpaceInvaders"]
COUNTS = (1, 8, 32, 64)


def read(folder, text):
    return read_study(study_file(folder, text))


def test_the_jobs_are_all_combinations_and_references_on_every_game_with_every_seed(tmp_path):
    study = read(
        tmp_path,
        """
        games = ["CartPole-v1", "Acrobot-v1"]
        seeds = 2
        ---
        [grid]
        kappa = [0.5, 1.0, 2.0]
        size = { narrow = { head_size = 8 }, wide = { head_size = 32, batch_size = 16 } }
        [references]
        dqn = { agent = "dqn", seeds = 1 }
        """,
    )
    expected = set()
    for env, kappa, (head, batch), seed in itertools.product(
        ("CartPole-v1", "Acrobot-v1"), (0.5, 1.0, 2.0), ((8, 8), (32, 16)), (0, 1)
    ):
        expected.add((env, "iqn", kappa, head, batch, seed))
    expected |= {(env, "dqn", 1.0, 16, 8, 0) for env in ("CartPole-v1", "Acrobot-v1")}
    jobs = study.jobs()
    found = [
        (
            j.env,
            j.config.run.agent,
            j.config.head.config.kappa,
            j.config.network.head_size,
            j.config.learner.batch_size,
            j.seed,
        )
        for j in jobs
    ]
    assert len(found) == len(set(found)) == 26
    assert set(found) == expected
    assert len({job.name for job in jobs}) == 26
    assert {(job.config.run.threads, job.config.run.device) for job in jobs} == {(1, "cpu")}


def test_names_of_jobs_are_readable_and_distinct(tmp_path):
    study = read(
        tmp_path,
        """
        games = ["CartPole-v1"]
        ---
        [grid]
        risk = ["wang:-0.75", "wang:0.75"]
        embedding_size = [8]
        """,
    )
    assert [job.name for job in study.jobs()] == [
        "cartpole-wang_-0.75-embedding_size-8-s0",
        "cartpole-wang_0.75-embedding_size-8-s0",
    ]


def test_a_study_survives_a_round_trip_through_a_dict(tmp_path):
    for name, small in itertools.product(shipped(), (False, True)):
        study = read_study(name, small=small)
        again = Study.from_dict(study.to_dict())
        assert again.hash == study.hash
        assert [job.config for job in again.jobs()] == [job.config for job in study.jobs()]


def test_more_seeds_keep_the_hash_and_any_other_change_does_not():
    study = read_study("samples", small=True)
    assert changed(study, seeds=3).hash == study.hash
    for other in (
        changed(study, steps=20_000),
        changed(study, games=["Asterix"]),
        changed(study, settings={"batch_size": "64"}),
        read_study("samples"),
    ):
        assert other.hash != study.hash


def test_the_samples_study_is_the_papers_grid_with_its_references():
    jobs = read_study("samples").jobs()
    iqn = [job.config for job in jobs if job.config.run.agent == "iqn"]
    assert {job.env for job in jobs} == {f"ALE/{game}-v5" for game in SIX}
    pairs = {(s.head.config.online_samples, s.head.config.target_samples) for s in iqn}
    assert pairs == set(itertools.product(COUNTS, COUNTS))
    assert len(iqn) == 16 * 6
    assert {job.combination.label for job in jobs if job.combination.reference} == {"dqn", "qr-dqn"}


def test_the_architecture_study_has_the_grid_of_the_appendix():
    study = read_study("architecture")
    settings = [job.config for job in study.jobs() if job.config.run.agent == "iqn"]
    found = {
        (
            s.head.config.embedding,
            s.head.config.embedding_size,
            s.head.config.embedding_activation,
            s.head.config.merge,
        )
        for s in settings
    }
    assert found == set(
        itertools.product(("cosine", "mlp"), (32, 64), ("relu", "sigmoid"), ("multiply", "concatenate"))
    )
    assert study.seeds == 2
    preferred = compose("atari-paper", {**study.preferred})
    assert preferred == compose("atari-paper", {})


def test_atari57_has_every_game_and_the_papers_agents_with_their_seeds():
    jobs = read_study("atari57").jobs()
    assert len({job.env for job in jobs}) == 57
    seeds = {}
    for job in jobs:
        seeds[job.config.run.agent] = max(seeds.get(job.config.run.agent, 0), job.seed + 1)
    assert seeds == {
        "iqn": 5,
        "qr-dqn": 3,
        "rainbow": 2,
        "c51": 1,
        "prioritized-dqn": 1,
        "dqn": 1,
    }


@pytest.mark.parametrize("name", shipped())
def test_a_study_of_the_paper_changes_nothing_but_its_grid(name):
    """All other settings are those of the preset atari-paper: 200M frames, 200 evaluations."""
    for job in read_study(name).jobs():
        own = {**job.combination.changes, "agent": job.config.run.agent, "seed": job.seed, "threads": 1}
        assert job.config == compose("atari-paper", {**own, "device": "cpu"})
        assert job.frames == 200_000_000
        assert job.config.run.steps // job.config.evaluation.evaluation_every == 200


@pytest.mark.parametrize("name", shipped())
def test_a_small_study_draws_the_same_figure_on_minatar(name):
    whole, small = read_study(name), read_study(name, small=True)
    assert small.figure == whole.figure
    assert small.figure in FIGURES
    assert [axis.name for axis in small.grid] == [axis.name for axis in whole.grid]
    assert all(job.env.startswith("MinAtar/") for job in small.jobs())
    early = small.window * small.settings["steps"]
    assert early >= 2 * small.settings["evaluation_every"]
    assert early > 2 * small.settings["learning_starts"]


def test_arguments_change_games_measures_and_agents():
    study = changed(
        read_study("risk"), games=["Pong", "ALE/Qbert-v5"], measures=["neutral", "wang:1.5"], seeds=2
    )
    assert {job.env for job in study.jobs()} == {"ALE/Pong-v5", "ALE/Qbert-v5"}
    assert [job.config.risk.risk for job in study.jobs()].count("wang:1.5") == 4
    agents = changed(read_study("atari57", small=True), agents=["fqf", "iqn"], games=["Breakout"])
    assert [job.config.run.agent for job in agents.jobs()] == ["fqf", "fqf", "iqn", "iqn"]


def seeds_of(study):
    return {one.label: one.seeds for one in study.configs()}


@pytest.mark.parametrize("swapped", [False, True])
def test_a_folder_keeps_the_largest_number_of_seeds_of_each_variant(tmp_path, swapped):
    whole = read_study("atari57")
    studies = [changed(whole, seeds=2), whole]
    for study in reversed(studies) if swapped else studies:
        found = StudyFolder(tmp_path / "study").open(study)
    most = {"iqn": 5, "qr-dqn": 3, "rainbow": 2, "c51": 2, "prioritized-dqn": 2, "dqn": 2}
    assert seeds_of(found) == seeds_of(StudyFolder(tmp_path / "study").read()) == most


def test_no_combination_loses_seeds_when_variants_set_their_own(tmp_path):
    text = """
        games = ["CartPole-v1"]
        ---
        [grid]
        size = {{ narrow = {{ head_size = 8 }}, wide = {{ head_size = 32{} }} }}
        depth = {{ one = {{ mlp_sizes = [8] }}, two = {{ mlp_sizes = [8, 8]{} }} }}
        [references]
        dqn = {{ agent = "dqn"{} }}
    """
    mine = read(tmp_path, text.format(", seeds = 5", "", ", seeds = 4"))
    theirs = read(tmp_path, text.format("", ", seeds = 2", ""))
    both = mine.with_seeds_of(theirs)
    assert both.hash == mine.hash
    for label, seeds in seeds_of(both).items():
        assert seeds >= max(seeds_of(mine)[label], seeds_of(theirs)[label]), label
    assert seeds_of(both)["narrow, one"] == 1
    assert seeds_of(both)["dqn"] == 4

import pytest

from quantail.errors import QuantailError
from quantail.experiments import changed, read_study, run_study
from quantail.experiments.folder import StudyFolder
from quantail.experiments.job import run_job
from tests.helpers.studies import study_file

GAMES = 'games = ["CartPole-v1"]\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GAMES + "---\n", "the grid is empty"),
        (GAMES + "---\n[grid]\nkappa = []", "axis kappa has no values"),
        (GAMES + "---\n[grid]\nkapa = [1.0]", "unknown setting 'kapa'. Did you mean 'kappa'?"),
        (GAMES + "---\n[grid]\nkappa = 1.0", "axis kappa takes a list of values or a table"),
        (GAMES + "---\n[grid]\nkappa = [1.0, 1.0]", "axis kappa has 1 twice"),
        (
            GAMES + "---\n[grid]\nseed = [1, 2]",
            "seed cannot be an axis: it is set by seeds of the study",
        ),
        (GAMES + "---\n[grid]\nengine = ['ray']", "engine cannot be an axis"),
        (GAMES + "---\n[grid]\nkappa = ['x']", "kappa takes a number"),
        (GAMES + "---\n[grid.size]\nwide = { hed_size = 3 }", "unknown setting 'hed_size'"),
        (GAMES + "---\n[grid.size]\nwide = 3", "variant wide takes settings"),
        ("---\n[grid]\nkappa = [1.0]", "games takes a list of environments"),
        ('games = ["Nowhere-v0"]\n---\n[grid]\nkappa = [1.0]', "unknown environment 'Nowhere-v0'"),
        (GAMES + "seeds = 0\n---\n[grid]\nkappa = [1.0]", "seeds takes a whole number"),
        (GAMES + "figure = 'pie'\n---\n[grid]\nkappa = [1.0]", "curves or aggregate, not 'pie'."),
        (GAMES + "figure = 'heatmap'\n---\n[grid]\nkappa = [1.0]", "heatmap takes a grid of two axes"),
        (GAMES + "preset = 'own.toml'\n---\n[grid]\nkappa = [1.0]", "preset takes atari"),
        (GAMES + "gird = 1\n---\n[grid]\nkappa = [1.0]", "not 'gird'. Did you mean 'grid'?"),
        ("small = 3\n" + GAMES + "---\n[grid]\nkappa = [1.0]", "small takes a table [small], not 3"),
        (GAMES + "---\nthreads = 0\n[grid]\nkappa = [1.0]", "a study's threads take 1 or more"),
        (GAMES + "---\n[grid]\nthreads = [0, 1]", "a study's threads take 1 or more"),
        (GAMES + "---\n[grid.mean]\nlow = { kappa = 0.5 }", "an axis cannot be called mean"),
        (GAMES + "---\n[grid.steps]\nlow = { kappa = 0.5 }", "an axis cannot be called steps"),
        (GAMES + "---\n[grid]\nconfig = ['x']", "an axis cannot be called config"),
        (
            GAMES + "figure = 'violins'\n---\n[references]\ndqn = { agent = 'dqn' }",
            "figure violins takes a grid of one axis or more",
        ),
        (
            GAMES + "---\n[grid]\nkappa = [1.0]\nloss = { low = { kappa = 0.5 } }",
            "the axes kappa and loss both set kappa",
        ),
        (GAMES + "---\n[grid]\nkappa = [1.0]\n[preferred]\nkappa = 2.0", "which is not on the grid"),
    ],
)
def test_an_invalid_study_is_refused_with_a_reason(tmp_path, text, said):
    with pytest.raises(QuantailError) as error:
        read_study(study_file(tmp_path, text))
    assert said in str(error.value)
    assert str(error.value).startswith("study tiny: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("settings = [1]\n[small]\nseeds = 2", "settings takes a table [settings], not [1]"),
        ("[small]\nsettings = [1]", "settings takes a table [settings], not [1]"),
        ("small = 3", "small takes a table [small], not 3"),
    ],
)
def test_an_invalid_small_version_is_refused_with_a_reason(tmp_path, text, said):
    path = tmp_path / "own.toml"
    path.write_text(f"{GAMES}{text}\n[grid]\nkappa = [1.0]")
    with pytest.raises(QuantailError) as error:
        read_study(path, small=True)
    assert str(error.value) == f"study own: {said}."


def test_a_setting_on_an_axis_cannot_also_be_set_for_every_run(tiny):
    with pytest.raises(QuantailError, match="kappa is set by the axis kappa"):
        changed(read_study(tiny), settings={"kappa": "7"})


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("agent = ['iqn', 'dqn']\nonline_samples = [4]", "dqn, online_samples 4 on CartPole-v1: online"),
        ("n_step = [1, 100]", "n_step 100 on CartPole-v1: learning_starts 60 comes before"),
        ("sticky = [0.0, 0.25]", "sticky 0 on CartPole-v1: sticky has no effect here"),
        ("evaluation_risk = ['wong:1']", "evaluation_risk wong:1 on CartPole-v1: evaluation_risk: "),
        ("risk = ['cvar:7']", "cvar:7 on CartPole-v1: risk cvar:7"),
    ],
)
def test_an_invalid_combination_is_named_before_anything_starts(tmp_path, grid, said):
    study = read_study(study_file(tmp_path, f"{GAMES}---\n[grid]\n{grid}"))
    with pytest.raises(QuantailError) as error:
        run_study(study, tmp_path / "out")
    assert said in str(error.value)
    assert not (tmp_path / "out").exists()


def test_unknown_studies_and_options_without_an_axis_are_refused(tmp_path):
    with pytest.raises(QuantailError, match="Did you mean 'samples'"):
        read_study("sample")
    with pytest.raises(QuantailError, match="cannot be read"):
        read_study(tmp_path / "none.toml")
    with pytest.raises(QuantailError, match="--measures needs an axis risk"):
        changed(read_study("samples"), measures=["neutral"])
    with pytest.raises(QuantailError, match="no small version"):
        read_study(study_file(tmp_path, f"{GAMES}---\n[grid]\nkappa = [1.0]"), small=True)


def test_a_folder_with_another_study_or_other_files_is_refused(tiny, tmp_path):
    study, out = read_study(tiny), tmp_path / "out"
    folder = StudyFolder(out)
    folder.open(study)
    assert run_job(out, next(iter(folder.jobs))) == "done"
    before = (out / "study.json").read_bytes()
    with pytest.raises(QuantailError, match="holds another study, with steps 400, not 700"):
        run_study(changed(study, steps=700), out)
    with pytest.raises(
        QuantailError, match="holds another study, with games CartPole-v1, not Acrobot-v1"
    ):
        run_study(changed(study, games=["Acrobot-v1"]), out)
    assert (out / "study.json").read_bytes() == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(QuantailError, match="is not a study"):
        run_study(study, tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_more_jobs_than_the_machine_has_cores_are_refused(tiny, tmp_path):
    with pytest.raises(QuantailError, match="jobs 1000 with 1 thread each does not fit"):
        run_study(read_study(tiny), tmp_path / "out", jobs=1000)
    with pytest.raises(QuantailError, match="engine takes local or ray, not 'rey'"):
        run_study(read_study(tiny), tmp_path / "out", engine="rey")

"""Callbacks of the user, and metrics that heads and callbacks report."""

import csv
import json
import math

import gymnasium as gym
import numpy as np
import pytest
import torch

import quantail as q
from quantail.errors import QuantailError
from quantail.runs.tables import EVALUATIONS, METRICS, CsvTable
from tests.helpers.runs import command, flags, quick


class Recorder(q.Callback):
    def __init__(self):
        self.events = []

    def on_step(self, progress):
        self.events.append(("step", progress.steps))

    def on_episode_end(self, progress):
        self.events.append(("episode", progress.episode.score))

    def on_evaluation(self, progress):
        self.events.append(("evaluation", progress.steps, progress.evaluation.mean))

    def on_checkpoint(self, progress):
        assert (progress.checkpoint / "state.json").exists()
        self.events.append(("checkpoint", int(progress.checkpoint.name)))

    def on_end(self, progress):
        self.events.append(("end", progress.steps))

    def of(self, kind):
        return [event[1] for event in self.events if event[0] == kind]


def train(out, steps=200, **more):
    return q.train("CartPole-v1", out=out, **(quick("iqn") | {"steps": steps} | more))


def rows(run, name="metrics"):
    with (run / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_callbacks_see_every_step_episode_evaluation_and_checkpoint_in_order(tmp_path):
    seen = Recorder()
    train(tmp_path / "run", callbacks=[seen])
    per_step = quick("iqn").get("num_envs", 1)
    assert seen.of("step") == list(range(per_step, 201, per_step))
    assert [float(row["return"]) for row in rows(tmp_path / "run", "episodes")] == seen.of("episode")
    evaluations = rows(tmp_path / "run", "evaluations")
    assert [int(row["steps"]) for row in evaluations] == seen.of("evaluation")
    assert seen.of("checkpoint")[-1] == 200
    assert seen.events[-1] == ("end", 200)


def test_a_run_with_callbacks_learns_the_same_as_one_without(tmp_path):
    plain, watched = train(tmp_path / "a"), train(tmp_path / "b", callbacks=[Recorder()])
    for key, tensor in plain.network.state_dict().items():
        assert torch.equal(tensor, watched.network.state_dict()[key]), key


class StopAt(q.Callback):
    def __init__(self, steps):
        self.steps = steps

    def on_step(self, progress):
        if progress.steps >= self.steps:
            progress.stop("enough")


def test_a_callback_stops_a_run_which_is_saved_and_resumes_exactly(tmp_path):
    whole = train(tmp_path / "whole")
    train(tmp_path / "half", callbacks=[StopAt(130)])
    assert (tmp_path / "half/checkpoints/000000130").exists()
    resumed = q.resume(tmp_path / "half")
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key
    for name in ("metrics", "episodes", "evaluations"):
        assert rows(tmp_path / "whole", name) == rows(tmp_path / "half", name)


@pytest.mark.parametrize("event", ["on_step", "on_episode_end", "on_evaluation", "on_checkpoint"])
def test_a_callback_that_raises_is_named_and_the_run_is_saved_first(event, tmp_path):
    class Broken(q.Callback):
        pass

    def fail(self, progress):
        if progress.steps >= 60:
            raise ValueError("no such file.")

    setattr(Broken, event, fail)
    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=[Broken()])
    text = str(error.value)
    assert text.startswith(f"the callback Broken failed in {event} at step ")
    assert "(ValueError: no such file): the run is saved, continue with quantail resume" in text
    whole, resumed = train(tmp_path / "whole"), q.resume(tmp_path / "run")
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key


def test_what_is_not_a_callback_is_refused_before_the_run_starts(tmp_path):
    for wrong, says in ((3, "not 3"), (Recorder, r"make one with \(\)")):
        with pytest.raises(QuantailError, match=f"instances of quantail.Callback.*{says}"):
            train(tmp_path / "run", callbacks=[wrong])
        assert not (tmp_path / "run").exists()


def test_progress_cannot_be_changed(tmp_path):
    class Meddler(q.Callback):
        def on_step(self, progress):
            for name in ("run", "agent", "steps", "metrics", "episode", "evaluation", "checkpoint"):
                with pytest.raises(AttributeError):
                    setattr(progress, name, None)
            progress.metrics["steps"] = -1

    train(tmp_path / "run", callbacks=[Meddler()])
    assert all(int(row["steps"]) > 0 for row in rows(tmp_path / "run"))


class Temperature(q.Callback):
    """Records a metric from step 100 on."""

    def on_step(self, progress):
        if progress.steps >= 100:
            progress.record("temperature", progress.steps / 10)


def test_a_recorded_metric_becomes_a_column_that_is_empty_before(tmp_path):
    train(tmp_path / "run", callbacks=[Temperature()], log_every=40)
    table = rows(tmp_path / "run")
    assert list(table[0]) == [*METRICS, "temperature"]
    assert [row["temperature"] for row in table] == ["", "", "12.0", "16.0", "20.0"]
    assert all(row["loss"] for row in table[1:])


def test_a_resumed_run_has_the_columns_of_one_that_was_not_stopped(tmp_path):
    train(tmp_path / "whole", callbacks=[Temperature()], log_every=20)
    train(tmp_path / "half", callbacks=[Temperature(), StopAt(90)], log_every=20)
    assert "temperature" not in rows(tmp_path / "half")[0]
    q.resume(tmp_path / "half", callbacks=[Temperature()])
    assert (tmp_path / "half/metrics.csv").read_bytes() == (tmp_path / "whole/metrics.csv").read_bytes()


@pytest.mark.parametrize("name", ["loss", "a b", "", 3])
def test_a_metric_takes_a_name_of_its_own(name, tmp_path):
    class Wrong(q.Callback):
        def on_step(self, progress):
            progress.record(name, 1.0)

    with pytest.raises(QuantailError, match="metric"):
        train(tmp_path / "run", callbacks=[Wrong()])


def test_a_table_that_was_widened_is_cut_by_rows_and_not_by_bytes(tmp_path):
    table = CsvTable(tmp_path / "t.csv", METRICS)
    for step in range(3):
        table.add(dict.fromkeys(METRICS, step))
    rows_before = table.rows
    table.add(dict.fromkeys(METRICS, 3) | {"extra": 7})
    again = CsvTable(tmp_path / "t.csv", METRICS)
    assert (again.rows, again.columns) == (4, (*METRICS, "extra"))
    assert again.truncate(rows_before)
    first, *others = (tmp_path / "t.csv").read_text().splitlines()
    assert first == ",".join([*METRICS, "extra"])
    assert others == [",".join([str(step)] * len(METRICS)) + "," for step in range(3)]
    assert not again.truncate(9)
    assert again.rows == 3


def test_only_metrics_take_new_columns(tmp_path):
    table = CsvTable(tmp_path / "t.csv", EVALUATIONS)
    table.add(dict.fromkeys(EVALUATIONS, 1) | {"extra": 7})
    assert CsvTable(tmp_path / "t.csv", EVALUATIONS).columns == EVALUATIONS


def test_what_is_recorded_of_an_evaluation_is_in_the_row_of_its_step(tmp_path):
    class Gap(q.Callback):
        def on_evaluation(self, progress):
            progress.record("gap", progress.evaluation.mean - 475)

    train(tmp_path / "run", callbacks=[Gap()], log_every=50, evaluation_every=100)
    found = {row["steps"]: row["gap"] for row in rows(tmp_path / "run")}
    means = {row["steps"]: float(row["mean"]) for row in rows(tmp_path / "run", "evaluations")}
    gaps = {steps: repr(mean - 475) for steps, mean in means.items()}
    assert found == {"50": gaps["0"], "100": gaps["100"], "150": "", "200": gaps["200"]}


class Ending(q.Callback):
    """Records where a run is saved and where it ends."""

    def on_checkpoint(self, progress):
        progress.record("saved_at", progress.steps)

    def on_end(self, progress):
        progress.record("ended_at", progress.steps)


def test_what_is_recorded_at_the_end_becomes_a_last_row_that_a_resumed_run_removes(tmp_path):
    train(tmp_path / "run", callbacks=[Ending()])
    *_, before, last = rows(tmp_path / "run")
    assert (before["steps"], before["ended_at"]) == ("200", "")
    assert (last["steps"], last["saved_at"], last["ended_at"]) == ("200", "200.0", "200.0")
    train(tmp_path / "half", callbacks=[Ending(), StopAt(130)])
    assert rows(tmp_path / "half")[-1]["ended_at"] == "130.0"
    q.resume(tmp_path / "half", callbacks=[Ending()])
    whole, half = rows(tmp_path / "run"), rows(tmp_path / "half")
    assert [row["ended_at"] for row in half] == [row["ended_at"] for row in whole]
    assert [row["loss"] for row in half] == [row["loss"] for row in whole]


def test_a_callback_that_fails_at_the_last_evaluation_leaves_the_last_row_to_the_resumed_run(tmp_path):
    class Broken(q.Callback):
        def on_evaluation(self, progress):
            if progress.steps == 200:
                raise ValueError

    with pytest.raises(QuantailError, match="continue with quantail resume"):
        train(tmp_path / "run", callbacks=[Broken()])
    assert rows(tmp_path / "run")[-1]["steps"] == "180"
    q.resume(tmp_path / "run")
    train(tmp_path / "whole")
    for name in ("metrics", "episodes", "evaluations"):
        assert rows(tmp_path / "whole", name) == rows(tmp_path / "run", name)


class Closing(q.Callback):
    """Notes that it was closed, then fails."""

    def __init__(self, error="closed badly"):
        self.closed, self.error = 0, error

    def on_close(self, progress):
        self.closed += 1
        raise OSError(self.error)


class ClosingToo(Closing):
    pass


@pytest.mark.parametrize("steps", [0, 60])
def test_an_error_is_not_hidden_by_those_of_closing_and_everything_is_closed(steps, tmp_path):
    class Broken(q.Callback):
        def on_step(self, progress):
            if progress.steps >= steps > 0:
                raise ValueError("the first error")

        def on_start(self, progress):
            if not steps:
                raise ValueError("the first error")

    closing = [Closing(), ClosingToo()]
    envs = []

    class Env(type(gym.make("CartPole-v1").unwrapped)):
        def close(self):
            envs.append(self)
            super().close()

    with pytest.raises(QuantailError) as error:
        q.train(Env, out=tmp_path / "run", callbacks=[Broken(), *closing], steps=200, **quick("iqn"))
    assert "(ValueError: the first error): the run is saved, continue with quantail" in str(error.value)
    assert str(error.value).endswith(".")
    assert [one.closed for one in closing] == [1, 1]
    assert len(envs) >= 2  # of the collector, besides the one that only gives its spaces


def test_a_callback_that_fails_to_close_is_named_and_the_rest_is_closed(tmp_path):
    closing = [Closing(), ClosingToo("later")]
    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=closing)
    failed = "the callback Closing failed in on_close at step 200 (OSError: closed badly)"
    assert str(error.value) == f"{failed}: the run is saved."
    assert [one.closed for one in closing] == [1, 1]
    with pytest.raises(QuantailError, match="has completed its 200 steps"):
        q.resume(tmp_path / "run")


def test_a_callback_that_fails_at_the_start_is_named_and_the_run_can_be_resumed(tmp_path):
    class Broken(q.Callback):
        def on_start(self, progress):
            raise KeyError

    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=[Broken()])
    failed, saved = "the callback Broken failed in on_start at step 0 (KeyError)", "the run is saved"
    assert str(error.value) == f"{failed}: {saved}, continue with quantail resume {tmp_path / 'run'}."
    whole, resumed = train(tmp_path / "whole"), q.resume(tmp_path / "run")
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key


class Keeper(q.Callback):
    """Has a state, which `saves` makes and `loads` takes back."""

    def __init__(self, saves, loads=lambda state: None, valid=True):
        self.saves, self.loads, self.valid = saves, loads, valid

    def state_dict(self):
        return self.saves()

    def load_state_dict(self, state):
        self.loads(state)

    def check(self):
        if not self.valid:
            raise ValueError("it is negative")


class Other(Keeper):
    pass


def fails():
    raise KeyError("count")


@pytest.mark.parametrize(
    ("saves", "says"),
    [
        (fails, "(KeyError: 'count')"),
        (lambda: None, "(TypeError: a state is a dictionary, not None)"),
        (lambda: {"n": np.int64(3)}, "'n' has a value that JSON does not take, Object of type int64"),
        (lambda: {"seen": [{1, 2}]}, "'seen' has a value that JSON does not take, Object of type set"),
        (lambda: {"best": -np.inf}, "'best' has a value that JSON does not take"),
        (lambda: {3: 4}, "a name in a state is a string, not 3"),
        (lambda: {"names": np.array(["a"])}, "the array 'names' is of <U1, which cannot be saved"),
    ],
)
def test_a_callback_whose_state_cannot_be_saved_is_named_and_the_run_is_saved(saves, says, tmp_path):
    good = Other(lambda: {"kept": 7, "array": np.arange(3)})
    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=[Keeper(saves), good])
    text = str(error.value)
    assert text.startswith("the callback Keeper failed in state_dict at step 50 (")
    assert says in text
    saved = "the run is saved without the state of Keeper, continue with quantail resume"
    assert text.endswith(f": {saved} {tmp_path / 'run'}.")
    loaded = []
    again = [Keeper(dict, loaded.append), Other(dict, loaded.append)]
    whole, resumed = train(tmp_path / "whole"), q.resume(tmp_path / "run", callbacks=again)
    for key, tensor in whole.network.state_dict().items():
        assert torch.equal(tensor, resumed.network.state_dict()[key]), key
    (state,) = loaded  # of the other callback
    assert state["kept"] == 7
    assert state["array"].tolist() == [0, 1, 2]


def test_a_state_that_its_callback_finds_impossible_is_not_saved(tmp_path):
    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=[Keeper(lambda: {"count": -1}, valid=False)])
    assert "Keeper failed in check at step 50 (ValueError: it is negative)" in str(error.value)
    content = json.loads((tmp_path / "run/checkpoints/000000050/state.json").read_text())
    assert "callback.Keeper" not in content


def test_a_callback_that_cannot_take_its_state_back_is_no_damage_of_the_checkpoint(tmp_path):
    train(tmp_path / "run", callbacks=[Keeper(lambda: {"count": 3})])
    with pytest.raises(QuantailError) as error:
        q.resume(tmp_path / "run", steps=300, callbacks=[Keeper(dict, lambda state: state["total"])])
    failed = "the callback Keeper failed in load_state_dict at step 200 (KeyError: 'total')"
    assert str(error.value) == f"{failed}: fix it, or resume without it; the run is unchanged."
    q.resume(tmp_path / "run", steps=220)
    assert rows(tmp_path / "run")[-1]["steps"] == "220"


def test_a_run_that_a_callback_stops_on_purpose_exits_with_success(tmp_path, capsys, monkeypatch):
    module = (
        "import quantail\n"
        "class Target(quantail.Callback):\n"
        "    def on_step(self, progress):\n"
        "        if progress.steps >= 100:\n"
        "            progress.stop('the target is reached')\n"
    )
    (tmp_path / "my_targets.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    run, words = tmp_path / "run", ("--quiet", "--callback", "my_targets:Target")
    settings = flags(quick("iqn") | {"steps": 101})
    assert command("train", "CartPole-v1", "--out", run, *words, *settings) == 0
    lines = capsys.readouterr().err.splitlines()
    why = "by a callback: the target is reached; everything is saved"
    assert f"stopped  after 100 of 101 steps {why}" in lines
    assert f"  quantail resume {run}" in lines
    assert command("resume", run, *words) == 0  # it stops in the last step, when there is nothing left
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("done     101 steps") for line in lines)
    assert f"  quantail resume {run}" not in lines


NUMBERS = {
    "of_torch": torch.tensor(0.25),
    "of_numpy": np.array(0.25),
    "scalar": np.float32(0.25),
    "whole": np.int64(3),
    "nothing": math.nan,
    "of_nothing": torch.tensor(math.nan),
}


class Numbers(q.Callback):
    def on_step(self, progress):
        for name, value in NUMBERS.items():
            progress.record(name, value)


def test_a_metric_is_a_number_of_any_library_and_nan_is_an_empty_cell(tmp_path):
    train(tmp_path / "whole", callbacks=[Numbers()])
    train(tmp_path / "half", callbacks=[Numbers(), StopAt(130)])
    q.resume(tmp_path / "half", callbacks=[Numbers()])
    found = rows(tmp_path / "whole")
    assert found == rows(tmp_path / "half")
    assert [found[-1][name] for name in NUMBERS] == ["0.25", "0.25", "0.25", "3.0", "", ""]
    assert np.isnan(q.read_run(tmp_path / "whole").metrics["nothing"]).all()


@pytest.mark.parametrize("value", [math.inf, torch.zeros(2), "x", True, None])
def test_what_is_no_number_is_no_metric(value, tmp_path):
    class Wrong(q.Callback):
        def on_step(self, progress):
            progress.record("mine", value)

    with pytest.raises(QuantailError, match="metric mine takes a number, not"):
        train(tmp_path / "run", callbacks=[Wrong()])


def test_callbacks_are_a_list_and_none_means_none(tmp_path):
    for wrong, says in ((Recorder(), r": write callbacks=\[Recorder\(...\)\]\."), (3, ", not 3.")):
        with pytest.raises(QuantailError, match=f"callbacks takes a list of callbacks{says}$"):
            train(tmp_path / "run", callbacks=wrong)
        assert not (tmp_path / "run").exists()
    train(tmp_path / "run", callbacks=None)
    seen = Recorder()
    q.resume(tmp_path / "run", steps=220, callbacks=(one for one in [seen]))
    assert seen.of("end") == [220]


def test_a_callback_that_fails_at_a_warning_of_the_save_is_named_too(tmp_path, monkeypatch):
    class Broken(q.Callback):
        def on_warning(self, progress):
            raise ValueError(progress.warning)

    def prune(saver, name):
        saver._warn("an old file stays")

    monkeypatch.setattr("quantail.training.saver.Saver._prune", prune)
    with pytest.raises(QuantailError) as error:
        train(tmp_path / "run", callbacks=[Broken()])
    failed = "the callback Broken failed in on_warning at step 50 (ValueError: an old file stays)"
    assert str(error.value).startswith(f"{failed}: the run is saved, continue with quantail resume")
    assert (tmp_path / "run/checkpoints/000000050").exists()

"""The benchmark of a cycle times a real run, beside all of the products that it has."""

import json
from contextlib import closing

import pytest
import torch
from safetensors.torch import load_file

from quantail.bench import cycle
from quantail.bench.measure import Row
from tests.bench.test_bench import flops
from tests.helpers.runs import command


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(cycle, "START", 100)


@pytest.fixture
def prepared(tmp_path):
    """Returns trainers that are about to learn; closes them in the end."""
    opened = []

    def prepare(job, **changes):
        changed = cycle.Job(job.setting, job.env, job.config.replace(**changes), job.trained)
        opened.append(cycle._prepare(changed, tmp_path / str(len(opened))))
        return opened[-1]

    yield prepare
    for trainer in opened:
        trainer.close()


@pytest.mark.parametrize(
    ("changes", "steps", "updates"),
    [({}, 2, 1), ({"train_frequency": 4, "num_envs": 2}, 4, 1), ({"num_envs": 3}, 6, 3)],
    ids=str,
)
def test_a_cycle_is_the_steps_between_two_updates_and_one_update(
    prepared, monkeypatch, changes, steps, updates
):
    counts = []

    def once(bench, setting, work, bound, seconds, scale):
        before = trainer.steps, trainer.learner.updates
        work()
        bound()
        counts.append((trainer.steps - before[0], trainer.learner.updates - before[1], scale))
        return Row(bench, setting, 1000.0, 1.0, 1.0, 1.0)

    monkeypatch.setattr(cycle, "race", once)
    (job,) = cycle.fresh_jobs(["small"], ["dqn"])
    trainer = prepared(job, batch_size=8, **changes)
    row = cycle._row("x", trainer, 0.0)
    assert counts == [(steps, updates, updates)]
    assert row.more["steps_per_second"] == steps / updates


@pytest.mark.parametrize("agent", ["iqn", "qr-dqn", "c51", "m-iqn"])
def test_the_bound_has_the_dense_products_of_every_decision_and_of_the_update(prepared, agent):
    (job,) = cycle.fresh_jobs(["minatar"], [agent])
    trainer = prepared(job, batch_size=4)
    trainer.start()
    while trainer.steps < cycle.START:
        trainer.step()
    bound = flops(cycle.bound_of(trainer, calls=4, updates=1))
    for network in (trainer.learner.online, trainer.learner.target):
        network.use_dense_products()
    batch, actor = trainer.replay.sample(), trainer.collector.actor

    def dense_cycle():
        trainer.learner.update(batch)
        with torch.no_grad():  # `choose` itself would be in inference mode, where nothing is counted
            for _ in range(4):
                actor._values()

    assert bound == pytest.approx(flops(dense_cycle), rel=0.002)


def test_a_trained_network_begins_with_the_weights_of_the_last_checkpoint(prepared, cartpoles):
    job = cycle.trained_job(cartpoles / "iqn-0")
    assert job.setting == "iqn small after 200 steps"
    trainer = prepared(job)
    folder = cartpoles / "iqn-0" / "checkpoints"
    saved = load_file(folder / (folder / "last").read_text().strip() / "agent.safetensors")
    for network in (trainer.learner.online, trainer.learner.target):
        found = network.state_dict()
        assert all(torch.equal(found[name], saved[name]) for name in saved)
    assert trainer.config.network.head_size == 16  # as the run has it
    assert trainer.parts.monitor.epsilon() == job.config.exploration.epsilon_end


def test_parts_are_measured_where_the_run_does_them(prepared):
    (job,) = cycle.fresh_jobs(["small"], ["prioritized-dqn"])
    trainer = prepared(job, batch_size=8)
    with closing(trainer):
        trainer.start()
        while trainer.steps < cycle.START:
            trainer.step()
        parts = cycle.Parts(trainer)
        work = parts.timed("cycle", lambda: [trainer.step() for _ in range(50)])
        work()
    shares = parts.shares()
    assert list(shares) == ["act", "play", "store", "sample", "update"]
    assert all(0 < share < 1 for share in shares.values())
    assert 0.5 < sum(shares.values()) <= 1.01


def test_the_command_times_the_cycles_that_are_asked_for(tmp_path, capsys, cartpoles):
    file = tmp_path / "bench.json"
    threads = torch.get_num_threads()
    words = ("bench", "cycle", "--seconds", 0, "--json", file)
    assert command(*words, "--preset", "minatar", "--agent", "dqn", "--agent", "iqn") == 0
    assert [row["setting"] for row in json.loads(file.read_text())["rows"]] == [
        "dqn minatar",
        "iqn minatar",
    ]
    assert command(*words, "--checkpoint", cartpoles / "dqn-0") == 0
    (row,) = json.loads(file.read_text())["rows"]
    assert row["setting"] == "dqn small after 200 steps"
    assert row["steps_per_second"] == pytest.approx(2000 / row["median_ms"], rel=0.01)
    assert torch.get_num_threads() == threads
    assert "dqn small after 200 steps" in capsys.readouterr().out


def test_frames_are_counted_where_a_step_has_several(breakout):
    (row,) = cycle.rows(0.0, [cycle.trained_job(breakout)])
    assert row.more["frames_per_second"] == pytest.approx(4 * row.more["steps_per_second"], rel=0.01)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--agent", "dqn"], "agent is an option of `quantail bench cycle`"),
        (["learner", "--checkpoint", "run"], "checkpoint is an option of `quantail bench cycle`"),
        (["cycle", "--agent", "dnq"], "unknown agent 'dnq'"),
        (["cycle", "--preset", "tiny"], "preset takes small, minatar or atari-paper, not 'tiny'"),
        (["cycle", "--checkpoint", "nowhere"], "there is no run at nowhere"),
        (["cycle", "--checkpoint", "run", "--agent", "iqn"], "checkpoint takes the agent of its run"),
    ],
)
def test_invalid_input_is_refused_in_one_sentence_before_anything_is_measured(words, expected, capsys):
    assert command("bench", *words) == 2
    message = capsys.readouterr().err
    assert expected in message
    assert message.count("\n") == 1

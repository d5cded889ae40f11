import json
import struct
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from quantail.config import Config
from quantail.training.loggers.tensorboard import TensorBoard
from quantail.training.loggers.wandb import WeightsAndBiases
from tests.helpers.runs import QUICK, command, flags, quantail

wandb = pytest.importorskip("wandb")
wandb_internal_pb2 = pytest.importorskip("wandb.proto.wandb_internal_pb2")


def history_of(run):
    """Return the metrics of a run from the LevelDB log that Weights & Biases writes when offline."""
    rows = []
    for path in sorted(run.glob("wandb/offline-run-*/run-*.wandb")):
        data, position, message = path.read_bytes(), 7, b""
        while position + 7 <= len(data):
            if 32_768 - position % 32_768 < 7:
                position += 32_768 - position % 32_768
                continue
            _, length, kind = struct.unpack("<IHB", data[position : position + 7])
            message += data[position + 7 : position + 7 + length]
            position += 7 + length
            if kind in (1, 4):  # a whole record, or its last part
                record = wandb_internal_pb2.Record.FromString(message)
                items = record.history.item
                message = b""
                if items:
                    rows.append({item.nested_key[0]: json.loads(item.value_json) for item in items})
    return rows


def test_weights_and_biases_gets_the_metrics_also_after_the_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "run"
    words = flags(QUICK["CartPole-v1"] | {"steps": 100, "wandb": "a-project"})
    assert command("train", "CartPole-v1", "--quiet", "--out", run, *words) == 0
    assert command("resume", run, "--steps", "200") == 0
    wandb.teardown()  # its service writes the file in the background until the process ends
    rows = history_of(run)
    assert [row["steps"] for row in rows if "training/loss" in row][-1] == 200
    assert [row["steps"] for row in rows if "evaluation/mean" in row] == [0, 100, 200]
    written = (run / "evaluations.csv").read_text().splitlines()
    mean = written[0].split(",").index("mean")
    sent = [row["evaluation/mean"] for row in rows if "evaluation/mean" in row]
    assert sent == [float(line.split(",")[mean]) for line in written[1:]]
    names = [path.name for path in run.glob("wandb/offline-run-*/run-*.wandb")]
    assert len(names) == 2
    assert len(set(names)) == 1  # two sessions, one run


def test_a_missing_account_is_reported_before_the_run_starts(tmp_path, monkeypatch):
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    words = flags(QUICK["CartPole-v1"] | {"steps": 100, "wandb": "a-project"})
    result = quantail("train", "CartPole-v1", "--quiet", "--out", tmp_path / "run", *words)
    assert result.returncode == 2
    assert result.stderr.count("\n") <= 2
    assert "WANDB_MODE=offline" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()  # so that the same command can be run again


def test_weights_and_biases_continues_a_run_that_it_knows(tmp_path, monkeypatch):
    options_given = {}
    monkeypatch.setattr(wandb, "init", lambda **options: options_given.update(options) or MagicMock())
    (tmp_path / "run.json").write_text('{"created": "today"}')
    WeightsAndBiases(Config.fitting({"wandb": "a-project"}), tmp_path)
    assert options_given["resume"] == "allow"
    assert len(options_given["id"]) == 16


def test_tensorboard_hides_what_a_killed_session_wrote_after_the_checkpoint(tmp_path):
    def log(board, steps, loss):
        board.on_log(SimpleNamespace(run=tmp_path, steps=steps, metrics={"steps": steps, "loss": loss}))

    first = TensorBoard()
    for steps in (10, 20):
        log(first, steps, float(steps))
    saved = first.state_dict()
    log(first, 30, 30.0)
    first.on_close(None)
    second = TensorBoard()
    second.load_state_dict(saved)
    for steps in (30, 40):
        log(second, steps, 0.5)
    second.on_close(None)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    seen = [(event.step, event.value) for event in events.Scalars("training/loss")]
    assert seen == [(10, 10.0), (20, 20.0), (30, 0.5), (40, 0.5)]


def test_without_the_setting_nothing_is_written(tmp_path):
    assert (
        command(
            "train",
            "CartPole-v1",
            "--quiet",
            "--out",
            tmp_path / "run",
            *flags(QUICK["CartPole-v1"] | {"steps": 60}),
        )
        == 0
    )
    assert not (tmp_path / "run" / "wandb").exists()

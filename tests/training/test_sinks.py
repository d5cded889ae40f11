import json
import struct

import pytest
from runs import QUICK, command, flags, quantail

wandb_internal_pb2 = pytest.importorskip("wandb.proto.wandb_internal_pb2")


def history_of(run):
    """Everything that a run sent, as Weights & Biases itself keeps it when offline: a LevelDB log."""
    rows = []
    for path in sorted(run.glob("wandb/offline-run-*/run-*.wandb")):
        data, place, message = path.read_bytes(), 7, b""
        while place + 7 <= len(data):
            if 32_768 - place % 32_768 < 7:
                place += 32_768 - place % 32_768
                continue
            _, length, kind = struct.unpack("<IHB", data[place : place + 7])
            message += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in (1, 4):  # whole, or the last part
                record = wandb_internal_pb2.Record.FromString(message)
                items = record.history.item
                message = b""
                if items:
                    rows.append({item.nested_key[0]: json.loads(item.value_json) for item in items})
    return rows


def test_weights_and_biases_gets_the_metrics_and_goes_on_when_the_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = tmp_path / "run"
    words = flags(QUICK["CartPole-v1"] | {"steps": 100, "wandb": "a-project"})
    assert command("train", "CartPole-v1", "--quiet", "--out", run, *words) == 0
    assert command("resume", run, "--steps", "200") == 0
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


def test_no_account_is_told_in_one_sentence_before_anything_is_learned(tmp_path, monkeypatch):
    for name in ("WANDB_MODE", "WANDB_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    words = flags(QUICK["CartPole-v1"] | {"steps": 100, "wandb": "a-project"})
    answer = quantail("train", "CartPole-v1", "--quiet", "--out", tmp_path / "run", *words)
    assert answer.returncode == 2
    assert answer.stderr.count("\n") <= 2
    assert "WANDB_MODE=offline" in answer.stderr
    assert "Traceback" not in answer.stderr


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

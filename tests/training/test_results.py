import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import quantail
from quantail.errors import QuantailError
from quantail.evaluation.evaluate import Evaluation
from quantail.evaluation.protocols import PROTOCOLS, Protocol
from quantail.evaluation.results import Result, require_one_protocol
from quantail.evaluation.starts import read_recording
from quantail.risk import CVaR, Neutral
from quantail.runs.checkpoints import Checkpoints
from quantail.runs.results import save_result, saved_results
from quantail.runs.select_results import collect_results
from tests.helpers.sealed import editing

OWN = Protocol("own", epsilon=0.0, episodes=2)


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "iqn-0")


def save(run, mean, *, protocol=OWN, risk=None, checkpoint=None, seed=1):
    """Save a result with this mean in a run."""
    returns = np.full(protocol.episodes, float(mean))
    played = Evaluation(
        returns, np.ones(len(returns), int), "CartPole-v1", risk or Neutral(), protocol, seed
    )
    return save_result(run, quantail.load(run, checkpoint), played)


def score(run, **options):
    return [(result.agent, result.score) for result in collect_results([run], **options)]


def test_a_result_replaces_only_one_with_the_same_conditions(run):
    longer, other = (Protocol("own", epsilon=0.0, episodes=9), Protocol("own", epsilon=0.5, episodes=2))
    human = [
        Protocol("human-starts", epsilon=0.0, episodes=2, starts=f"recording {name} by a person")
        for name in "ab"
    ]
    paths = [save(run, 1), save(run, 2, protocol=longer), save(run, 3, protocol=other)]
    paths += [save(run, 4, risk=CVaR(0.1)), save(run, 5, seed=2), save(run, 6, checkpoint="150")]
    paths += [save(run, 7, protocol=one) for one in human]
    assert len(set(paths)) == len(saved_results(run)) == 8
    assert save(run, 8) == paths[0]
    assert len(saved_results(run)) == 8


def test_the_best_checkpoint_precedes_the_longest_result_which_precedes_the_newest(run):
    best = Checkpoints(run / "checkpoints").best_steps()
    other = next(name for name in Checkpoints(run / "checkpoints").names() if int(name) != best)
    longer = Protocol("own", epsilon=0.0, episodes=9)
    save(run, 3, protocol=longer)
    save(run, 4)
    save(run, 5, protocol=Protocol("own", epsilon=0.0, episodes=50), checkpoint=str(int(other)))
    assert score(run) == [("iqn", 3.0)]
    save(run, 6, protocol=longer, seed=2)
    assert score(run) == [("iqn", 6.0)]


def test_a_result_under_another_risk_measure_is_listed_as_another_agent(run):
    save(run, 3)
    save(run, 4, risk=CVaR(0.1))
    assert score(run) == [("iqn", 3.0), ("iqn, played with cvar:0.1", 4.0)]


def test_a_protocol_is_chosen_by_its_name_or_its_whole_label(run):
    other = OWN.changed(epsilon=0.5)
    save(run, 3)
    save(run, 4, protocol=other)
    assert score(run, protocol="own") == [("iqn", 3.0)]
    assert score(run, protocol="own with epsilon 0.5") == [("iqn", 4.0)]
    assert score(run, protocol=other.label) == [("iqn", 4.0)]
    with pytest.raises(QuantailError, match=r"it has own, own with epsilon 0\.5"):
        score(run, protocol="sticky")


def test_runs_with_other_settings_are_not_seeds_of_one_agent(cartpoles, run, tmp_path):
    other = shutil.copytree(cartpoles / "iqn-1", tmp_path / "iqn-1")
    with editing(other / "run.json") as about:
        about["settings"]["learning_rate"] = 0.5
    save(run, 3)
    save(other, 4)
    agents = {result.agent for result in collect_results([run, other])}
    assert agents == {"iqn, learning_rate 0.001", "iqn, learning_rate 0.5"}


def test_a_result_records_the_training_frames_of_its_checkpoint(run):
    save(run, 3, checkpoint="150")
    (result,) = collect_results([run])
    assert (result.frames, result.episodes, result.seed) == ("150", "2", "0")


@pytest.mark.parametrize(
    "change",
    [
        lambda content: {"schema": 1},
        lambda content: content | {"protocol": content["protocol"] | {"gravity": 2}},
        lambda content: content | {"protocol": content["protocol"] | {"epsilon": 9}},
        lambda content: {k: v for k, v in content.items() if k != "returns"},
        lambda content: content | {"mean": "much"},
        lambda content: content | {"schema": 99},
        lambda content: content | {"protocol": [1]},
        lambda content: content | {"protocol": content["protocol"] | {"epsilon": 0.5}},
        lambda content: content | {"protocol": content["protocol"] | {"name": 5}},
        lambda content: content | {"returns": "ab"},
        lambda content: content | {"returns": []},
        lambda content: content | {"returns": [1, "x"]},
        lambda content: content | {"mean": "nan"},
        lambda content: content | {"mean": float("nan")},
        lambda content: content | {"steps": "x"},
        lambda content: content | {"frames": None},
        lambda content: content | {"episodes": "x"},
        lambda content: content | {"risk": 5},
    ],
)
def test_the_error_for_a_damaged_result_names_its_file(run, change):
    path = save(run, 3)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(QuantailError, match=path.name) as refused:
        collect_results([run])
    assert not any(word in str(refused.value) for word in ("Error", "argument", "NoneType"))


def test_results_can_be_read_if_the_pointer_to_the_best_checkpoint_is_damaged(run):
    save(run, 3)
    (run / "checkpoints" / "best").write_bytes(b"\xff\n")
    assert score(run) == [("iqn", 3.0)]


def human(checksum):
    return replace(PROTOCOLS["human-starts"], episodes=2, starts=f"recording {checksum} by a person")


def test_a_recording_can_be_chosen_by_its_checksum(run):
    save(run, 3, protocol=human("abc"))
    save(run, 4, protocol=human("def"))
    with pytest.raises(QuantailError, match=r"evaluated from different starts: .*--starts abc"):
        require_one_protocol(collect_results([run], "human-starts"))
    assert score(run, starts="def") == [("iqn", 4.0)]
    assert score(run, protocol="human-starts", starts="abc") == [("iqn", 3.0)]
    with pytest.raises(
        QuantailError, match="no result under protocol own from starts abc: it has human"
    ):
        score(run, protocol="own", starts="abc")


def test_a_recording_can_be_chosen_by_its_file(run):
    bank = Path(quantail.__file__).parent / "evaluation" / "reference" / "starts"
    recording = read_recording(bank / "pong-scripted.jsonl")
    save(run, 3, protocol=human("abc"))
    save(run, 4, protocol=replace(human(""), starts=recording.label))
    assert score(run, starts=bank / "pong-scripted.jsonl") == [("iqn", 4.0)]


def test_any_protocol_with_starts_counts_as_human_starts(run):
    save(run, 3, protocol=replace(human("abc"), name="mine", epsilon=0.5))
    (result,) = collect_results([run])
    assert result.human_starts
    assert not Result("a", "pong", "0", 1.0, "human-starts-like v1 (x)").human_starts


def test_the_name_of_a_standard_protocol_in_a_table_refers_to_that_protocol(run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("game,score,protocol\nPong,3,no-op\n")
    save(run, 3, protocol=replace(PROTOCOLS["no-op"], frames=0, episodes=2))
    assert require_one_protocol(collect_results([run, table])).startswith("no-op v1")
    for word in ("no-op", "no-op v1", PROTOCOLS["no-op"].label, PROTOCOLS["no-op"].hash):
        assert len(collect_results([run, table], word)) == 2
    with pytest.raises(QuantailError, match="no result under protocol sticky: it has no-op"):
        collect_results([table], "sticky")
    other_family = Result(
        "a", "minatar/breakout", "0", 1.0, "human-starts"
    )  # the standard protocols are for ALE
    assert other_family.conditions == "human-starts"

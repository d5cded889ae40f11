import json
import shutil

import numpy as np
import pytest

import quantail
from quantail.errors import QuantailError
from quantail.evaluation import Evaluation, Protocol
from quantail.risk import CVaR, Neutral
from quantail.training.checkpoints import Checkpoints
from quantail.training.gather import gather_results
from quantail.training.results import save_result, saved_results

OWN = Protocol("own", epsilon=0.0, episodes=2)


@pytest.fixture
def run(cartpoles, tmp_path):
    return shutil.copytree(cartpoles / "iqn-0", tmp_path / "iqn-0")


def keep(run, mean, *, protocol=OWN, risk=None, checkpoint=None, seed=1):
    """A result with this mean, kept in a run."""
    returns = np.full(protocol.episodes, float(mean))
    played = Evaluation(
        returns, np.ones(len(returns), int), "CartPole-v1", risk or Neutral(), protocol, seed
    )
    return save_result(run, quantail.load(run, checkpoint), played)


def score(run, **options):
    return [(result.agent, result.score) for result in gather_results([run], **options)]


def test_nothing_is_replaced_but_by_just_the_same_question(run):
    longer, other = (Protocol("own", epsilon=0.0, episodes=9), Protocol("own", epsilon=0.5, episodes=2))
    human = [
        Protocol("human-starts", epsilon=0.0, episodes=2, starts=f"recording {name} by a person")
        for name in "ab"
    ]
    paths = [keep(run, 1), keep(run, 2, protocol=longer), keep(run, 3, protocol=other)]
    paths += [keep(run, 4, risk=CVaR(0.1)), keep(run, 5, seed=2), keep(run, 6, checkpoint="150")]
    paths += [keep(run, 7, protocol=one) for one in human]
    assert len(set(paths)) == len(saved_results(run)) == 8
    assert keep(run, 8) == paths[0]
    assert len(saved_results(run)) == 8


def test_the_best_checkpoint_counts_before_the_longest_result_before_the_newest(run):
    best = Checkpoints(run / "checkpoints").best_steps()
    other = next(name for name in Checkpoints(run / "checkpoints").names() if int(name) != best)
    longer = Protocol("own", epsilon=0.0, episodes=9)
    keep(run, 3, protocol=longer)
    keep(run, 4)
    keep(run, 5, protocol=Protocol("own", epsilon=0.0, episodes=50), checkpoint=str(int(other)))
    assert score(run) == [("iqn", 3.0)]
    keep(run, 6, protocol=longer, seed=2)
    assert score(run) == [("iqn", 6.0)]


def test_another_risk_is_another_agent(run):
    keep(run, 3)
    keep(run, 4, risk=CVaR(0.1))
    assert score(run) == [("iqn", 3.0), ("iqn, played with cvar:0.1", 4.0)]


def test_a_protocol_is_chosen_by_its_name_or_its_whole_label(run):
    other = OWN.changed(epsilon=0.5)
    keep(run, 3)
    keep(run, 4, protocol=other)
    assert score(run, protocol="own") == [("iqn", 3.0)]
    assert score(run, protocol="own with epsilon 0.5") == [("iqn", 4.0)]
    assert score(run, protocol=other.label) == [("iqn", 4.0)]
    with pytest.raises(QuantailError, match=r"it has own, own with epsilon 0\.5"):
        score(run, protocol="sticky")


def test_runs_with_other_settings_are_not_seeds_of_one_agent(cartpoles, run, tmp_path):
    other = shutil.copytree(cartpoles / "iqn-1", tmp_path / "iqn-1")
    about = json.loads((other / "run.json").read_text())
    about["settings"]["learning_rate"] = 0.5
    (other / "run.json").write_text(json.dumps(about))
    keep(run, 3)
    keep(other, 4)
    agents = {result.agent for result in gather_results([run, other])}
    assert agents == {"iqn, learning_rate 0.001", "iqn, learning_rate 0.5"}


def test_a_result_tells_the_frames_that_its_weights_have_seen(run):
    keep(run, 3, checkpoint="150")
    (result,) = gather_results([run])
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
    ],
)
def test_a_damaged_result_is_named_in_one_sentence(run, change):
    path = keep(run, 3)
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(QuantailError, match=path.name):
        gather_results([run])

"""The plan of the queue."""

from pathlib import Path

import pytest

from quantail.errors import QuantailError
from tests.tools.conftest import QUEUE
from tools.results.plan import Spec, parse_settings, settings_text
from tools.results.reading import read_plan, require_trainable

SHIPPED = Path(__file__).parent.parent.parent / "results" / "queue.toml"


def plan_of(tmp_path, text):
    path = tmp_path / "queue.toml"
    path.write_text(text)
    return read_plan(path)


def test_every_run_of_the_shipped_queue_can_be_composed():
    plan = read_plan(SHIPPED)
    require_trainable(plan)
    runs = plan.background()
    assert len({spec.id for _, spec in runs}) == len(runs) > 400
    tuning = {spec.seed for study, spec in runs if not study.reported}
    assert tuning.isdisjoint(spec.seed for study, spec in runs if study.reported)
    assert not plan.study("pong").background


def test_any_prefix_of_a_study_is_balanced_over_games_and_agents():
    plan = read_plan(SHIPPED)
    runs = plan.study("minatar").runs()
    assert [spec.seed for spec in runs] == [0] * 15 + [1] * 15 + [2] * 15
    assert len({(spec.env, spec.agent) for spec in runs[:15]}) == 15


def test_an_id_follows_from_the_content_alone_and_stays():
    one = Spec("CartPole-v1", "dqn", "small", 0, 600, 3, (("n_step", "3"), ("risk", "cvar:0.1")))
    assert one.id == "8090cfbb78ac"  # rows of earlier queues are found by it
    assert parse_settings(settings_text(one.settings)) == one.settings
    assert one.flags == ["--n-step=3", "--risk=cvar:0.1"]
    assert Spec("CartPole-v1", "dqn", "small", 1, 600, 3, one.settings).id != one.id


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("agents =", "agent =", "there is no key 'agent'. Did you mean 'agents'?"),
        ("steps = 600", "", "it needs steps"),
        ("steps = 600", 'steps = "many"', "steps cannot be 'many'"),
        ("[[study]]", "[[studies]]", "it takes [[study]] alone"),
        ("seeds = [0, 1]", "seeds = [0, 1", "cannot be read"),
        ("steps = 600", "steps = 600\ngrid = { n_step = 3 }", "takes a list of values"),
        ('["dqn"]', '["dqm"]', "unknown agent 'dqm'"),
        ("learning_starts", "learning_begins", "learning_begins"),
    ],
)
def test_a_mistake_in_the_queue_is_answered_with_one_sentence(tmp_path, before, after, sentence):
    assert before in QUEUE
    with pytest.raises(QuantailError) as found:
        require_trainable(plan_of(tmp_path, QUEUE.replace(before, after)))
    assert sentence in str(found.value)

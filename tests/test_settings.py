import json

import pytest

from quantail.config import Config, coerce, flat_settings
from quantail.config.toml import read_toml, to_toml
from quantail.errors import QuantailError
from quantail.recipes import PRESETS, compose
from tests.helpers.configs import labelled


def test_the_defaults_are_the_papers():
    c = Config()
    head, learner, exploration = c.head.config, c.learner, c.exploration
    assert (head.online_samples, head.target_samples, head.policy_samples) == (64, 64, 32)
    assert (head.embedding, head.embedding_size, head.merge) == ("cosine", 64, "multiply")
    assert (head.kappa, learner.gradient_clip) == (1.0, 0.0)
    assert (learner.learning_rate, learner.optimizer.config.adam_epsilon) == (5e-5, 0.01 / 32)
    assert (learner.batch_size, learner.train_frequency) == (32, 4)
    assert (learner.target_update_interval, learner.learning_starts) == (10_000, 50_000)
    assert (c.replay.buffer_size, learner.discount) == (1_000_000, 0.99)
    assert (exploration.epsilon_start, exploration.epsilon_end) == (1.0, 0.01)
    assert exploration.epsilon_steps == 1_000_000


def test_the_atari_preset_is_the_papers_protocol():
    c = compose("atari-paper", {})
    ale, environment, evaluation = c.environment.family.config, c.environment, c.evaluation
    assert (environment.stack, ale.action_repeat, ale.no_ops, ale.sticky) == (4, 4, 30, 0.0)
    assert (environment.clip_rewards, ale.life_loss_ends) == (1.0, True)
    assert evaluation.evaluation_epsilon == 0.001
    assert environment.max_episode_steps * ale.action_repeat == 108_000
    assert c.run.steps * ale.action_repeat == 200_000_000
    assert evaluation.evaluation_every * ale.action_repeat == 1_000_000
    assert evaluation.evaluation_steps * ale.action_repeat == 500_000


def test_a_preset_lists_only_what_it_changes():
    for name, preset in PRESETS.items():
        family = {"family": preset.settings.get("family", "gymnasium")}
        plain = compose(preset.like, {}) if preset.like else Config.fitting(family)
        usual = plain.to_dict() | {"family": "gymnasium"}
        same = [key for key, value in preset.settings.items() if usual.get(key) == value]
        assert not same, f"{name} repeats the default of {same}"


def test_the_users_changes_override_agent_and_preset():
    assert compose("minatar", {"learning_rate": 1.0}).to_dict()["learning_rate"] == 1.0


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_written_as_toml_reads_back_as_the_same_settings(name, tmp_path):
    file = tmp_path / "own.toml"
    written = compose(name, {"torso": "mlp", "mlp_sizes": (64, 32)})
    file.write_text(to_toml(written, name, {}), encoding="utf-8")
    assert compose(str(file), {}, base=name) == labelled(written, file)


def test_settings_survive_json():
    s = compose("minatar", {})
    assert Config.from_dict(json.loads(json.dumps(s.to_dict()))) == s


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("steps", "1e6", 1_000_000),
        ("steps", "200_000", 200_000),
        ("seed", "9007199254740993", 9007199254740993),
        ("mlp_sizes", "128,64", (128, 64)),
        ("mlp_sizes", 32, (32,)),
        ("tensorboard", "yes", True),
        ("discount", "0.5", 0.5),
        ("kappa", 0, 0.0),
    ],
)
def test_values_from_flags_and_files_are_converted_to_the_settings_type(name, text, value):
    assert coerce(name, text) == value
    assert type(coerce(name, text)) is type(value)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("steps", "many", "steps takes a whole number of at least 1"),
        ("steps", 0, "steps takes a whole number of at least 1"),
        ("steps", "inf", "steps takes a whole number"),
        ("steps", 10, "steps 10 end before learning begins"),
        ("learning_starts", 10, "learning_starts 10 comes before the first n-step return"),
        ("steps", 1.5, "steps takes a whole number"),
        ("discount", 1.2, "discount takes a number from 0 to 1"),
        ("discount", float("nan"), "discount takes a number from 0 to 1"),
        ("merge", "multply", "Did you mean 'multiply'"),
        ("tensorboard", "maybe", "tensorboard takes true or false"),
        ("mlp_sizes", [], "mlp_sizes takes whole numbers"),
        ("learning_rte", 1, "Did you mean 'learning_rate'"),
        ("online_samples", 0, "online_samples takes a whole number of at least 1"),
    ],
)
def test_the_error_for_a_wrong_setting_says_what_the_setting_takes(name, value, says):
    with pytest.raises(QuantailError, match=says):
        compose("small", {name: value})


def test_sample_sizes_of_one_and_a_huber_threshold_of_zero_are_allowed():
    one = {"online_samples": 1, "target_samples": 1, "policy_samples": 1, "kappa": 0}
    assert compose("small", one).to_dict()["online_samples"] == 1


def test_a_buffer_too_small_for_the_frame_stacks_is_refused():
    with pytest.raises(QuantailError, match="buffer_size 16"):
        compose("atari-paper", {"buffer_size": 16, "num_envs": 8})


def test_every_setting_has_a_help_text_and_a_source():
    for name, one in flat_settings().items():
        assert one.about.help, name
        assert one.about.source, name
        assert one.about.help.isascii() or not set("αβγεηκλπσταφψ") & set(one.about.help), name


@pytest.mark.parametrize("content", ["steps = ", "stepps = 3", "steps = 'x'", "[run]\nsteps = 3"])
def test_a_broken_preset_file_is_refused(content, tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(QuantailError):
        read_toml(file)

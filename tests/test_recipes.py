import pytest

from quantail.config import Config
from quantail.config.toml import to_toml
from quantail.envs import find_family
from quantail.errors import QuantailError
from quantail.evaluation.protocols import PROTOCOLS, own_protocol
from quantail.recipes import AGENTS, PRESETS, compose, composition, parts_of
from tests.helpers.configs import labelled

PARTS = ("head", "dueling", "noisy", "double", "target", "n_step", "sampler")
# The parts of the agents in their papers, in the order of PARTS.
TABLE = {
    "dqn": ("expected", False, False, False, "bellman", 1, "uniform"),
    "double-dqn": ("expected", False, False, True, "bellman", 1, "uniform"),
    "dueling-dqn": ("expected", True, False, True, "bellman", 1, "uniform"),
    "prioritized-dqn": ("expected", False, False, True, "bellman", 1, "prioritized"),
    "prioritized-dueling-dqn": ("expected", True, False, True, "bellman", 1, "prioritized"),
    "c51": ("categorical", False, False, False, "bellman", 1, "uniform"),
    "qr-dqn": ("quantiles", False, False, False, "bellman", 1, "uniform"),
    "rainbow": ("categorical", True, True, True, "bellman", 3, "prioritized"),
    "iqn": ("implicit", False, False, False, "bellman", 1, "uniform"),
    "rainbow-iqn": ("implicit", True, True, True, "bellman", 3, "prioritized"),
    "m-iqn": ("implicit", False, False, False, "munchausen", 1, "uniform"),
    "fqf": ("fractions", False, False, False, "bellman", 1, "uniform"),
    "hl-gauss": ("hl-gauss", False, False, False, "bellman", 1, "uniform"),
}


def test_each_agent_has_the_parts_of_its_paper_and_there_are_no_other_agents():
    assert list(AGENTS) == list(TABLE)
    for name, expected in TABLE.items():
        config = compose("atari-paper", {"agent": name})
        assert tuple(config.to_dict().get(part, False) for part in PARTS) == expected, name
        assert parts_of(config) == []


def test_the_published_atari_settings():
    def of(agent, *names):
        config = compose("atari-paper", {"agent": agent})
        return tuple(config.to_dict().get(name) for name in names)

    rmsprop = ("optimizer", "learning_rate", "rmsprop_epsilon")
    assert of("dqn", *rmsprop) == ("rmsprop", 2.5e-4, 0.01 / 32**2)
    assert of("dqn", "epsilon_end", "evaluation_epsilon", "target_update_interval") == (
        0.1,
        0.05,
        10_000,
    )
    assert of("double-dqn", *rmsprop) == ("rmsprop", 2.5e-4, 0.01 / 32**2)
    double = ("epsilon_end", "evaluation_epsilon", "target_update_interval")
    for agent in ("double-dqn", "dueling-dqn", "prioritized-dqn", "prioritized-dueling-dqn"):
        assert of(agent, *double) == (0.01, 0.001, 30_000)
    for agent in ("prioritized-dqn", "prioritized-dueling-dqn"):
        assert of(agent, "learning_rate", "priority_exponent", "importance_start") == (6.25e-5, 0.6, 0.4)
        assert of(agent, "importance_steps", "steps") == (50_000_000, 50_000_000)
    assert of("dueling-dqn", "gradient_clip") == (10.0,)
    adam = ("optimizer", "learning_rate", "adam_epsilon")
    assert of("c51", *adam) == ("adam", 2.5e-4, 0.01 / 32)
    assert of("c51", "atoms", "value_min", "value_max") == (51, -10.0, 10.0)
    assert of("hl-gauss", "atoms", "value_min", "value_max") == (51, -10.0, 10.0)
    assert of("hl-gauss", "hl_gauss_sigma") == (0.75,)
    assert of("qr-dqn", *adam, "quantiles", "kappa") == ("adam", 5e-5, 0.01 / 32, 200, 1.0)
    assert of("rainbow", *adam) == ("adam", 6.25e-5, 1.5e-4)
    assert of("rainbow", "learning_starts", "target_update_interval", "gradient_clip") == (
        20_000,
        8_000,
        10.0,
    )
    assert of("rainbow", "priority_exponent", "noisy_sigma", "atoms") == (0.5, 0.5, 51)
    assert of("rainbow", "epsilon_start", "epsilon_end") == (0.0, 0.0)
    assert of("iqn", *adam) == ("adam", 5e-5, 0.01 / 32)
    assert of("rainbow-iqn", *adam) == ("adam", 5e-5, 0.01 / 32)
    munchausen = ("munchausen_alpha", "munchausen_temperature", "munchausen_clip")
    assert of("m-iqn", *adam, *munchausen) == ("adam", 5e-5, 0.01 / 32, 0.9, 0.03, -1.0)
    assert of("fqf", *adam, "quantiles", "fraction_rate") == ("adam", 5e-5, 0.01 / 32, 32, 2.5e-9)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("agent", AGENTS)
def test_every_agent_composes_with_every_preset_and_survives_a_toml_file(agent, preset, tmp_path):
    config = compose(preset, {"agent": agent})
    file = tmp_path / "own.toml"
    sources = composition(preset, {"agent": agent}).sources
    file.write_text(to_toml(config, "mine", sources), encoding="utf-8")
    assert compose(str(file), {}, base=preset) == labelled(config, file)


def test_a_part_can_be_changed_in_a_file_without_leaving_the_agent(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text('agent = "rainbow"\nnoisy = false\natoms = 21\n', encoding="utf-8")
    config = compose(str(file), {}, base="minatar")
    assert (
        config.run.agent,
        config.network.noisy,
        config.learner.target.config.double,
        config.head.config.atoms,
    ) == (
        "rainbow",
        False,
        True,
        21,
    )
    assert config.exploration.epsilon_start == 1.0  # without noise it explores with ε-greedy


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("other", AGENTS)
@pytest.mark.parametrize("agent", ["dqn", "iqn", "rainbow", "m-iqn", "fqf"])
def test_a_file_does_not_change_an_agent_other_than_its_own(agent, other, preset, tmp_path):
    file = tmp_path / "own.toml"
    written = compose(preset, {"agent": agent, "head_size": 77})
    file.write_text(to_toml(written, "mine", {}), encoding="utf-8")
    config = compose(str(file), {"agent": other}, base=preset)
    assert labelled(config, preset) == compose(preset, {"agent": other, "head_size": 77})


def test_naming_the_files_own_agent_changes_nothing(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(
        'agent = "rainbow"\nnoisy = false\nvalue_max = 500\nlearning_rate = 0.5\n', encoding="utf-8"
    )
    for preset in PRESETS:
        config = compose(str(file), {}, base=preset)
        assert (config.network.noisy, config.head.config.value_max, config.learner.learning_rate) == (
            False,
            500,
            0.5,
        )
        assert compose(str(file), {"agent": "rainbow"}, base=preset) == config


def test_a_file_that_names_no_agent_applies_to_the_given_one(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("n_step = 5\n", encoding="utf-8")
    config = compose(str(file), {"agent": "rainbow"}, base="minatar")
    assert (config.learner.n_step, config.learner.target.config.double) == (5, True)


def test_a_presets_settings_for_a_head_apply_whichever_agent_has_that_head():
    mine = compose("small", {"agent": "iqn", "head": "categorical"}).head.config
    assert (mine.atoms, mine.value_max) == (101, 100.0)
    for preset in PRESETS:
        c51, hl_gauss = (compose(preset, {"agent": agent}).to_dict() for agent in ("c51", "hl-gauss"))
        for name in ("atoms", "value_min", "value_max"):
            assert hl_gauss[name] == c51[name], (preset, name)
    assert compose("small", {"agent": "m-iqn", "head": "fractions"}).to_dict()["quantiles"] == 16
    assert compose("atari-paper", {"head": "fractions"}).to_dict()["quantiles"] == 32


def test_each_part_can_be_changed_by_a_flag_and_differences_from_the_agent_are_described():
    changes = {"agent": "iqn", "n_step": 3, "double": True, "sampler": "prioritized"}
    config = compose("minatar", changes)
    assert parts_of(config) == ["with double", "with prioritized sampler"]
    assert parts_of(compose("minatar", {"agent": "rainbow", "dueling": "no"})) == ["without dueling"]
    assert parts_of(compose("minatar", {"head": "categorical"})) == ["with categorical head"]


def test_noise_replaces_epsilon_unless_the_user_wants_both():
    assert compose("minatar", {"noisy": True}).to_dict()["epsilon_start"] == 0
    assert compose("minatar", {"noisy": True, "epsilon_start": 0.3}).to_dict()["epsilon_start"] == 0.3
    assert compose("minatar", {"agent": "rainbow", "noisy": False}).to_dict()["epsilon_start"] == 1.0


def test_munchausen_overrides_the_n_step_of_a_preset():
    assert compose("small", {"agent": "iqn"}).to_dict()["n_step"] > 1
    assert compose("small", {"target": "munchausen"}).to_dict()["n_step"] == 1
    assert compose("small", {"agent": "m-iqn"}).to_dict()["n_step"] == 1


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"agent": "m-iqn", "n_step": 3}, "target munchausen takes n_step 1, not 3"),
        (
            {"agent": "m-iqn", "double": True},
            "double has no effect here: it is used only with target",
        ),
        ({"agent": "rainbow", "target": "munchausen"}, "takes n_step 1, not 3"),
        ({"agent": "dqn", "kappa": 0}, "kappa 0 would learn the median"),
        ({"agent": "fqf", "quantiles": 1}, "quantiles 1 leaves no fraction to learn"),
        ({"agent": "c51", "value_min": 3, "value_max": 3}, "value_min 3 is not below value_max 3"),
        ({"agent": "hl-gauss", "value_min": 3, "value_max": 2}, "value_min 3 is not below value_max 2"),
        ({"agent": "hl-gauss", "hl_gauss_sigma": 0}, "hl_gauss_sigma takes a number of at least 0.01"),
        ({"agent": "c51", "hl_gauss_sigma": 1}, "only with head hl-gauss, and head is categorical"),
        ({"agent": "c51", "atoms": 1}, "atoms takes a whole number of at least 2"),
        ({"head": "gaussian"}, "unknown head 'gaussian': it takes expected, categorical, "),
        ({"sampler": "prioritised"}, "Did you mean 'prioritized'"),
        ({"agent": "dqnn"}, "Did you mean 'dqn'"),
        (
            {"atoms": 21},
            "atoms has no effect here: it is used only with head categorical or hl-gauss",
        ),
        ({"agent": "dqn", "online_samples": 4}, "only with head implicit, and head is expected"),
        ({"agent": "c51", "kappa": 0.5}, "kappa has no effect here"),
        ({"priority_exponent": 0.3}, "only with sampler prioritized, and sampler is uniform"),
        (
            {"noisy_sigma": 0.3},
            "no effect here: it is used only with noisy, and noisy is no",
        ),
        (
            {"munchausen_clip": 1.0, "target": "munchausen"},
            "munchausen_clip takes a number of",
        ),
        ({"rmsprop_epsilon": 0.1}, "only with optimizer rmsprop, and optimizer is adam"),
    ],
    ids=str,
)
def test_contradictory_settings_are_refused_with_the_reason(changes, says):
    with pytest.raises(QuantailError, match=says):
        compose("minatar", changes)


def test_every_value_that_is_not_a_default_has_a_source():
    for agent in AGENTS:
        for preset in PRESETS:
            composed = composition(preset, {"agent": agent})
            values, parts = composed.config.to_dict(), composed.config.parts
            plain = Config.fitting({kind: one.name for kind, one in parts.items()}).to_dict()
            changed = {k for k in values if values[k] != plain[k]} - {"preset"}
            named = {kind for kind in parts if kind in composed.sources}
            assert set(composed.sources) - named == changed - named
            assert all(composed.sources.values())


@pytest.mark.parametrize("agent", AGENTS)
def test_the_fast_preset_differs_from_the_papers_only_in_the_samples_of_tau(agent):
    paper, fast = (
        compose(preset, {"agent": agent}).to_dict() for preset in ("atari-paper", "atari-fast")
    )
    sampling = {"online_samples", "target_samples", "policy_samples", "tau_sampling", "adam_epsilon"}
    changed = {name for name in paper if paper[name] != fast[name]} - {"preset"}
    assert changed == (sampling if AGENTS[agent].parts["head"] == "implicit" else set())
    # The loss sums over N, so its gradient scales with N; ε scales too, so that Adam's steps are equal.
    if "online_samples" not in paper:
        return
    scale = fast["online_samples"] / paper["online_samples"]
    assert fast["adam_epsilon"] / paper["adam_epsilon"] == pytest.approx(scale)


def test_the_sticky_preset_differs_from_the_papers_only_in_its_environment_and_protocol():
    paper, sticky = (compose(preset, {}) for preset in ("atari-paper", "atari-sticky"))
    values = sticky.to_dict()
    differ = {name for name, value in paper.to_dict().items() if value != values[name]}
    assert differ == {"sticky", "no_ops", "life_loss_ends", "preset"}
    assert (
        own_protocol(find_family("ALE/Pong-v5", sticky.environment), sticky).label
        == PROTOCOLS["sticky"].label
    )


@pytest.mark.parametrize("preset", ["atari-paper", "minatar", "small", "worlds"])
def test_beta_of_prioritized_replay_reaches_one_at_the_end_of_the_run(preset):
    changes = {"agent": "prioritized-dqn"}
    assert (
        compose(preset, changes).to_dict()["importance_steps"]
        == compose(preset, changes).to_dict()["steps"]
    )
    assert compose(preset, changes | {"steps": 60_000}).to_dict()["importance_steps"] == 60_000
    given = compose(preset, changes | {"steps": 60_000, "importance_steps": 9})
    assert given.to_dict()["importance_steps"] == 9

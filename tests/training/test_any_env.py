"""Observations of several arrays and action masks, from the first step to a video."""

import itertools

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import quantail as q
from quantail.errors import QuantailError
from quantail.recipes import AGENTS
from tests.helpers.runs import command, flags, killed_at, quick, same_learning
from tests.helpers.shop import Shop

SHOP = {"num_envs": 2, "stack": 1}
ENVS = ("tests.helpers.shop:Shop-v0", "tests.helpers.shop:ShopWithEntry-v0")


def settings(agent, **changes):
    return quick(agent) | SHOP | changes


@pytest.mark.parametrize("agent", sorted(AGENTS))
def test_every_agent_learns_from_any_observation_and_takes_only_allowed_actions(agent, tmp_path):
    trained = q.train(Shop, out=tmp_path / "run", steps=160, **settings(agent))
    env = q.make(Shop, trained.config)
    observation, info = env.reset(seed=3)
    assert sorted(observation) == ["doors", "lots", "shelf", "today/0", "today/1"]
    allowed = info["action_mask"].astype(bool)
    action = trained.act(observation, mask=allowed)
    assert allowed[np.ravel_multi_index(tuple(action), (3, 2))]
    values = np.where(allowed, trained.values(observation), -np.inf)
    assert tuple(action) == np.unravel_index(values.argmax(), (3, 2))


@pytest.mark.parametrize("env", ENVS)
def test_a_run_killed_in_the_middle_resumes_bit_for_bit(env, tmp_path):
    given = settings("rainbow-iqn", stack=3, steps=200)
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert command("train", env, "--out", whole, "--quiet", *flags(given)) == 0
    killed_at("os.rename", ".000000150.part", "train", env, "--out", cut, "--quiet", *flags(given))
    assert command("resume", cut, "--quiet") == 0
    same_learning(whole, cut)


@pytest.mark.parametrize("env", ENVS)
def test_every_command_respects_the_mask(env, tmp_path, capsys):
    run = tmp_path / "run"
    assert command("train", env, "--out", run, "--quiet", "--steps", 160, *flags(settings("iqn"))) == 0
    for words in (
        ("eval", run, "--episodes", 3),
        ("eval", run, "--episodes", 3, "--epsilon", 1),
        ("risk-profile", run, "--episodes", 3),
        ("calibrate", run, "--episodes", 3, "--states", 2, "--continuations", 4),
        ("report", run, "--protocol", "own"),
        ("video", run, "--out", tmp_path / "video.mp4"),
    ):
        assert command(*words) == 0, capsys.readouterr().err


def test_what_the_environment_gives_can_be_passed_to_the_agent(tmp_path):
    trained = q.train(Shop, out=tmp_path / "run", steps=100, **settings("iqn"))
    given, info = Shop().reset(seed=1)
    adapted, _ = q.make(Shop, trained.config).reset(seed=1)
    np.testing.assert_array_equal(trained.values(given), trained.values(adapted))
    entry, _ = Shop("observation").reset(seed=1)
    np.testing.assert_array_equal(trained.act(entry), trained.act(given, mask=info["action_mask"]))
    with pytest.raises(QuantailError, match="without the entry 'shelf'"):
        trained.act({key: value for key, value in given.items() if key != "shelf"})
    with pytest.raises(QuantailError, match="not finite"):
        trained.act(given | {"today": (np.full(3, np.nan), 1)})
    with pytest.raises(QuantailError, match="for each of the 6 actions"):
        trained.act(given, mask=[1, 0])
    with pytest.raises(QuantailError, match="allows no action"):
        trained.act(given, mask=np.zeros(6))


def test_a_loaded_agent_acts_as_the_one_that_was_saved(tmp_path):
    trained = q.train(Shop, out=tmp_path / "run", steps=100, **settings("fqf"))
    trained.save(tmp_path / "saved")
    loaded = q.load(tmp_path / "saved")
    given, _ = Shop().reset(seed=1)
    np.testing.assert_array_equal(loaded.values(given), trained.values(given))


class Split(gym.ObservationWrapper):
    """CartPole with its numbers in the entries of a Dict."""

    def __init__(self, keys):
        super().__init__(gym.make("CartPole-v1"))
        self.keys, box = keys, self.env.observation_space
        self.observation_space = spaces.Dict(
            {
                key: spaces.Box(box.low[part], box.high[part])
                for key, part in zip(keys, self.parts(), strict=True)
            }
        )

    def parts(self):
        return np.array_split(np.arange(4), len(self.keys))

    def observation(self, observation):
        return {key: observation[part] for key, part in zip(self.keys, self.parts(), strict=True)}


@pytest.mark.parametrize("keys", [("all",), ("cart", "pole"), ("a", "b", "c", "d")])
def test_vectors_in_a_dict_are_learned_from_as_one_vector_bit_for_bit(keys, tmp_path):
    chosen = quick("iqn") | {"steps": 160, "stack": 1}
    q.train(lambda: gym.make("CartPole-v1"), out=tmp_path / "array", **chosen)
    q.train(lambda: Split(keys), out=tmp_path / "dict", **chosen)
    weights = [(tmp_path / run / "checkpoints/000000160/agent.safetensors") for run in ("array", "dict")]
    metrics = [(tmp_path / run / "metrics.csv") for run in ("array", "dict")]
    assert metrics[0].read_bytes() == metrics[1].read_bytes()
    assert len({path.stat().st_size for path in weights}) <= 2  # the names of layers may differ


class AllAllowed(gym.Wrapper):
    """CartPole that says that every action is allowed."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))

    def reset(self, **options):
        observation, info = self.env.reset(**options)
        return observation, info | {"action_mask": np.ones(2, np.int8)}

    def step(self, action):
        *rest, info = self.env.step(action)
        return *rest, info | {"action_mask": np.ones(2, np.int8)}


@pytest.mark.parametrize("agent", ["iqn", "m-iqn", "rainbow"])
def test_masks_that_allow_everything_change_no_bit_of_a_run(agent, tmp_path):
    chosen = quick(agent) | {"steps": 160, "num_envs": 2}
    q.train(lambda: gym.make("CartPole-v1"), out=tmp_path / "without", **chosen)
    q.train(AllAllowed, out=tmp_path / "with", **chosen)
    for name in ("agent", "learner"):
        file = f"checkpoints/000000160/{name}.safetensors"
        assert (tmp_path / "with" / file).read_bytes() == (tmp_path / "without" / file).read_bytes()


class Forgetful(AllAllowed):
    """An environment whose masks fail at its fifth step."""

    def __init__(self, mask):
        super().__init__()
        self.mask, self.steps = mask, itertools.count(1)

    def step(self, action):
        *rest, info = super().step(action)
        if next(self.steps) == 5:
            info = {} if self.mask is None else info | {"action_mask": self.mask}
        return *rest, info


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (None, "gave no action mask after step 5"),
        (np.zeros(2), "allows no action after step 5 of the episode"),
        (np.ones(3), r"takes a 0 or 1 for each of the 2 actions, not one of shape \(3,\)"),
        (np.array([0.5, 1]), "takes a 0 or 1 for each of the 2 actions, not"),
    ],
)
def test_a_mask_that_fails_in_an_episode_is_an_error_that_names_the_step(mask, says, tmp_path):
    with pytest.raises(QuantailError, match=says):
        q.train(lambda: Forgetful(mask), out=tmp_path / "run", steps=100, **quick("iqn"))


def test_a_torso_for_one_array_refuses_several_in_one_sentence(tmp_path):
    says = r"nature takes a single array.*doors, lots, shelf.*--torso auto"
    with pytest.raises(QuantailError, match=says):
        q.train(Shop, out=tmp_path / "run", torso="nature")


class Grid(gym.Env):
    """A grid whose entries count from values other than 0, as integers of 64 bits."""

    observation_space = spaces.Dict(
        {
            "grid": spaces.Box(-5, 5, (3, 3), np.int64),
            "inner": spaces.Dict({"turn": spaces.Discrete(4, start=-2)}),
        }
    )
    action_space = spaces.Discrete(5, start=3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.look(), {}

    def step(self, action):
        assert 3 <= action < 8
        return self.look(), 1.0, bool(self.np_random.random() < 0.1), False, {}

    def look(self):
        return {
            "grid": self.np_random.integers(-5, 6, (3, 3)),
            "inner": {"turn": np.int64(self.np_random.integers(-2, 2))},
        }


def test_nested_entries_and_actions_that_count_from_other_numbers_are_learned_from(tmp_path):
    trained = q.train(Grid, out=tmp_path / "run", steps=120, **settings("iqn"))
    given, _ = Grid().reset(seed=0)
    assert trained.act(given) in range(3, 8)

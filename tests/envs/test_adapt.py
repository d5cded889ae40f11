from collections import OrderedDict

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from quantail.envs import find_family, make, specs_of
from quantail.envs.actions import action_spec, as_mask
from quantail.envs.adapt import Adapter
from quantail.envs.observations import ObservationError, encode, observation_spec
from quantail.envs.source import require_fresh
from quantail.errors import QuantailError
from quantail.recipes import compose
from quantail.spaces import ActionSpec


class Counting(gym.Env):
    """Observes the number of the step, and ends as specified."""

    def __init__(self, space=None, actions=None, ends=("terminated", 5), reward=1.0):
        self.observation_space = space or spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = actions or spaces.Discrete(3, start=4)
        self.ends, self.reward = ends, reward
        self.taken = []

    def observe(self):
        if isinstance(self.observation_space, spaces.Discrete):
            return self.observation_space.start + self.t
        return np.full(self.observation_space.shape, self.t, self.observation_space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return self.observe(), {}

    def step(self, action):
        self.taken.append(action)
        self.t += 1
        how, when = self.ends
        over = self.t == when
        return self.observe(), self.reward, over and how == "terminated", over and how == "truncated", {}


def test_stacks_hold_the_newest_observations_and_zeros_before_the_first():
    env = Adapter(Counting(), 3, "counting")
    first, _ = env.reset(seed=0)
    assert first[:, 0].tolist() == [0, 0, 0]
    seen = [env.step(4)[0][:, 0].tolist() for _ in range(4)]
    assert seen == [[0, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4]]
    again, _ = env.reset(seed=0)
    assert again[:, 0].tolist() == [0, 0, 0]


def test_returned_observations_do_not_change_later():
    env = Adapter(Counting(), 2, "counting")
    env.reset(seed=0)
    kept = env.step(0)[0]
    env.step(0)
    assert kept[:, 0].tolist() == [0, 1]


def test_actions_are_passed_to_the_environment_unchanged():
    inner = Counting()
    env = Adapter(inner, 1, "counting")
    env.reset(seed=0)
    env.step(4)
    env.step(np.int64(6))
    assert inner.taken == [4, 6]
    assert specs_of(env)[1] == ActionSpec(3, 4)
    assert env.action_space == inner.action_space


def test_an_environment_that_reuses_its_array_does_not_change_earlier_observations():
    class Reusing(Counting):
        buffer = np.zeros(2, np.float32)

        def observe(self):
            self.buffer[:] = self.t
            return self.buffer

    env = Adapter(Reusing(spaces.Box(-9, 9, (2,), np.float32)), 1, "reusing")
    env.reset(seed=0)
    kept = env.step(4)[0]
    env.reset(seed=0)
    assert kept.tolist() == [1, 1]


def test_errors_of_an_environment_are_reported_with_its_name_and_line():
    class Broken(Counting):
        def step(self, action):
            raise BrokenPipeError("the simulator died")

    env = Adapter(Broken(), 1, "Broken-v0")
    env.reset(seed=0)
    with pytest.raises(
        QuantailError, match=r"Broken-v0 failed in step: BrokenPipeError.*test_adapt.py, line"
    ):
        env.step(4)


def test_uint8_observations_are_scaled_by_their_highest_value():
    assert observation_spec(spaces.Box(0, 255, (4,), np.uint8), 1, "x").tree.scale == 1 / 255
    assert observation_spec(spaces.Box(0, 1, (4,), np.uint8), 1, "x").tree.scale == 1
    assert observation_spec(spaces.MultiBinary(4), 1, "x").tree.scale == 1


def test_a_registered_environment_needs_no_render_mode_and_its_limit_can_be_raised():
    gym.register(
        "QuantailTest/Plain-v0", entry_point=lambda: Counting(ends=("", 0)), max_episode_steps=5
    )
    for limit, expected in ((0, 5), (9, 9), (3, 3)):
        env = make("QuantailTest/Plain-v0", compose("small", {"max_episode_steps": limit}).environment)
        env.reset(seed=0)
        assert [env.step(4)[3] for _ in range(expected)] == [False] * (expected - 1) + [True]


def test_a_function_that_returns_the_same_environment_twice_is_refused():
    shared = Counting()
    with pytest.raises(QuantailError, match="must make a new environment at each call"):
        require_fresh(lambda: shared)
    require_fresh(Counting)


def test_terminated_and_truncated_are_distinguished():
    for how, expected in (("terminated", (True, False)), ("truncated", (False, True))):
        env = Adapter(Counting(ends=(how, 1)), 1, "counting")
        env.reset(seed=0)
        observation, _, terminated, truncated, _ = env.step(0)
        assert (terminated, truncated) == expected
        assert observation.tolist() == [1, 1]


def test_max_episode_steps_truncates():
    env = make(Counting, compose("small", {"max_episode_steps": 3}).environment)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def test_discrete_observations_become_one_hot_vectors_that_count_from_their_start():
    env = Adapter(Counting(spaces.Discrete(6, start=10)), 1, "counting")
    assert env.reset(seed=0)[0].tolist() == [1, 0, 0, 0, 0, 0]
    assert env.step(0)[0].tolist() == [0, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("space", "layout", "dtype"),
    [
        (spaces.Box(0, 255, (96, 96, 3), np.uint8), "hwc", "uint8"),
        (spaces.Box(0, 255, (3, 96, 96), np.uint8), "chw", "uint8"),
        (spaces.Box(0, 255, (84, 84), np.uint8), "hw", "uint8"),
        (spaces.Box(0, 1, (10, 10, 10), bool), "hwc", "bool"),
        (spaces.Box(0, 255, (128,), np.uint8), "vector", "uint8"),
        (spaces.Box(-1, 1, (3,), np.float64), "vector", "float32"),
        (spaces.MultiBinary(7), "vector", "bool"),
        (spaces.Box(0, 1, (5, 5, 8), np.float32), "hwc", "float32"),
        (spaces.Box(0, 1, (8, 5, 5), np.float32), "chw", "float32"),
        (spaces.Box(0, 255, (120, 160, 3), np.uint8), "hwc", "uint8"),
        (spaces.Box(0, 255, (3, 120, 160), np.uint8), "chw", "uint8"),
        (spaces.Box(0, 255, (4, 96, 96, 3), np.uint8), "nhwc", "uint8"),
        (spaces.Box(0, 255, (4, 3, 96, 96), np.uint8), "nchw", "uint8"),
        (spaces.Box(0, 1, (2, 2), np.float32), "vector", "float32"),
        (spaces.Box(0, 1, (), np.float64), "vector", "float32"),
        (spaces.Box(-5, 5, (3,), np.int64), "vector", "float32"),
        (spaces.Discrete(4), "one-hot", "bool"),
        (spaces.MultiDiscrete([2, 3]), "one-hot", "bool"),
    ],
)
def test_the_layout_of_an_observation_follows_its_space(space, layout, dtype):
    leaf = observation_spec(space, 1, "x").tree
    assert (leaf.layout, leaf.dtype) == (layout, dtype)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(5),
        spaces.Dict(a=spaces.Discrete(2), b=spaces.Tuple([spaces.Sequence(spaces.Discrete(2))])),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.Dict(),
    ],
    ids=str,
)
def test_unsupported_observations_are_refused_with_a_suggestion(space):
    with pytest.raises(QuantailError, match=r"X-v0 has observations (of type|without)"):
        observation_spec(space, 1, "X-v0")


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e39])
def test_rewards_that_are_not_finite_are_refused(value):
    env = Adapter(Counting(reward=value), 1, "X-v0")
    env.reset(seed=0)
    with pytest.raises(QuantailError, match="X-v0 gave a reward of"):
        env.step(0)


def test_continuous_actions_are_refused():
    with pytest.raises(QuantailError, match="Box actions"):
        make("Pendulum-v1", compose("small", {}).environment)


@pytest.mark.parametrize(
    ("env", "family", "preset"),
    [
        ("CartPole-v1", "gymnasium", "small"),
        ("MinAtar/Asterix-v0", "minatar", "minatar"),
        ("ALE/Pong-v5", "ale", "atari-paper"),
        ("PongNoFrameskip-v4", "ale", "atari-paper"),
        ("gymnasium.envs.classic_control:CartPole-v1", "gymnasium", "small"),
    ],
)
def test_the_family_of_an_environment_names_its_preset(env, family, preset):
    found = find_family(env)
    assert (found.name, found.preset) == (family, preset)


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ("CartPol-v1", "Did you mean 'CartPole-v1'"),
        ("ALE/Pongg-v5", "Did you mean 'ALE/Pong-v5'"),
        ("no_such_module:X-v0", "cannot be imported"),
        ("", "unknown environment"),
    ],
)
def test_an_unknown_environment_is_refused_with_the_most_similar_name(env, says):
    with pytest.raises(QuantailError, match=says):
        find_family(env)


def test_settings_for_ale_games_are_refused_for_other_environments():
    with pytest.raises(
        QuantailError, match="no_ops has no effect here: it is used only with family ale"
    ):
        make("CartPole-v1", compose("small", {"no_ops": 5}).environment)


def test_a_function_that_does_not_make_an_environment_is_refused():
    with pytest.raises(QuantailError, match="not a Gymnasium environment"):
        make(lambda: 3, compose("small", {}).environment)
    with pytest.raises(QuantailError, match="cannot be made"):
        make(lambda: 1 / 0, compose("small", {}).environment)


@pytest.mark.parametrize(("value", "refused"), [(255, False), (256, True), (-1, True), (0.5, True)])
def test_values_that_do_not_fit_in_uint8_are_refused_and_not_wrapped(value, refused):
    class Careless(gym.Env):
        observation_space = gym.spaces.Box(0, 255, (84, 84), np.uint8)
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed=None, options=None):
            return np.full((84, 84), value), {}

    env = Adapter(Careless(), 1, "careless")
    if not refused:
        assert (env.reset(seed=0)[0] == value).all()
        return
    with pytest.raises(QuantailError, match="its observation_space says uint8"):
        env.reset(seed=0)


def test_an_environment_with_an_attribute_game_is_not_taken_for_minatar():
    class Playing(Counting):
        game = "chess"

        def step(self, action):
            self.sample = self.np_random.random()
            return super().step(action)

    env = Adapter(Playing(), 1, "playing")
    env.reset(seed=0)
    samples = []
    for seed in (1, 1, 2):
        env.reseed(seed)
        assert not env.used_randomness()
        env.step(4)
        assert env.used_randomness()
        samples.append(env.unwrapped.sample)
    assert samples[0] == samples[1] != samples[2]


class Named(gym.Wrapper):
    def __init__(self, names):
        super().__init__(gym.make("CartPole-v1").unwrapped)
        self.env.action_names = names


def test_actions_have_the_names_that_the_environment_gives_them():
    config = compose("small", {}).environment
    assert make(lambda: Named(("left", "right")), config).action_names() == ["left", "right"]
    assert make("CartPole-v1", config).action_names() == ["action 0", "action 1"]
    with pytest.raises(QuantailError, match="has 1 names for 2 actions"):
        make(lambda: Named(["left"]), config).action_names()


def encoded(space, observation):
    spec = observation_spec(space, 1, "env")
    return encode(spec, observation)


def test_the_entries_of_a_dict_have_one_order_however_the_space_has_them():
    box = spaces.Box(-1, 1, (1,))
    one = spaces.Dict(OrderedDict([("a", box), ("b", box)]))
    other = spaces.Dict(OrderedDict([("b", box), ("a", box)]))
    assert list(observation_spec(one, 1, "one").leaves) == ["a", "b"]
    assert list(observation_spec(other, 1, "other").leaves) == ["a", "b"]


@pytest.mark.parametrize("key", [0, "", "a/b"])
def test_keys_that_make_no_path_are_refused(key):
    with pytest.raises(QuantailError, match="keys must be texts without /"):
        observation_spec(spaces.Dict({key: spaces.Box(-1, 1, (1,))}), 1, "env")


def test_numbers_of_every_dtype_become_one_hot_vectors():
    flags = spaces.Tuple((spaces.Discrete(3), spaces.Discrete(2)))
    found = encoded(flags, (np.uint64(2), True))
    assert found["0"].tolist() == [False, False, True]
    assert found["1"].tolist() == [False, True]
    assert encoded(spaces.Discrete(4, start=-2), np.int8(-1)).tolist() == [False, True, False, False]
    several = spaces.MultiDiscrete([[2, 3], [1, 2]], start=[[0, 5], [1, 0]])
    vector = encoded(several, np.array([[1, 5], [1, 1]])).astype(int).tolist()
    assert vector == [0, 1, 1, 0, 0, 1, 0, 1]
    with pytest.raises(ObservationError, match="whole numbers from 0 to 3, not 4"):
        encoded(spaces.Discrete(4), 4)


def test_several_numbers_are_one_action_and_may_have_a_mask_each():
    actions = action_spec(spaces.MultiDiscrete([3, 2], start=[1, 0]), "env")
    for action in range(6):
        assert actions.from_env(actions.to_env(action)) == action
    np.testing.assert_array_equal(actions.to_env(np.array([0, 5])), [[1, 0], [3, 1]])
    each = as_mask(([1, 0, 1], [0, 1]), actions)
    np.testing.assert_array_equal(each, [0, 1, 0, 0, 0, 1])
    np.testing.assert_array_equal(as_mask([1, 0, 0, 1, 1, 1], actions), [1, 0, 0, 1, 1, 1])
    narrow = action_spec(spaces.MultiDiscrete([2, 1]), "env")
    np.testing.assert_array_equal(as_mask(([1, 0], [1]), narrow), [1, 0])


def test_too_many_combinations_of_actions_are_warned_of_or_refused():
    with pytest.warns(UserWarning, match="1,331 combinations"):
        action_spec(spaces.MultiDiscrete([11, 11, 11]), "env")
    with pytest.raises(QuantailError, match="has 1,000,000 combinations of actions"):
        action_spec(spaces.MultiDiscrete([100, 100, 100]), "env")

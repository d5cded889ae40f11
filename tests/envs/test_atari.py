import ale_py
import numpy as np
import pytest
from ale_py import roms
from PIL import Image

from quantail.envs import make, specs_of
from quantail.envs.ale.game import AtariGame, area_average
from quantail.recipes import compose


def raw(game):
    ale = ale_py.ALEInterface()
    ale.setFloat("repeat_action_probability", 0.0)
    ale.setInt("random_seed", 0)
    ale.loadROM(roms.get_rom_path(game))
    ale.reset_game()
    return ale


def shrink(screen, side=84):
    return np.asarray(Image.fromarray(screen).resize((side, side), Image.Resampling.BILINEAR))


@pytest.mark.parametrize("game", ["breakout", "space_invaders"])
def test_frames_and_rewards_match_the_raw_emulator(game):
    """Four frames per action, the maximum of the last two, unclipped rewards, no sticky actions."""
    env, ale = AtariGame(game, no_ops=0), raw(game)
    frame, info = env.reset(seed=0)
    np.testing.assert_array_equal(frame, shrink(ale.getScreenGrayscale()))
    rng = np.random.default_rng(0)
    for _ in range(150):
        action = int(rng.integers(env.action_space.n))
        lives, reward, screens = ale.lives(), 0, []
        for _ in range(4):
            if not ale.game_over():
                reward += ale.act(ale.getMinimalActionSet()[action])
                screens.append(ale.getScreenGrayscale())
        frame, score, terminated, truncated, info = env.step(action)
        assert (score, terminated, truncated) == (reward, ale.game_over(), False)
        assert info["life_lost"] == (ale.lives() < lives or ale.game_over())
        if terminated:
            break
        np.testing.assert_array_equal(frame, shrink(np.maximum(*screens[-2:])))


def test_a_lost_life_is_reported_and_the_episode_continues():
    env = AtariGame("breakout", no_ops=0)
    env.reset(seed=0)
    lost, steps = 0, 0
    while True:
        _, _, terminated, truncated, info = env.step(1)
        lost, steps = lost + info["life_lost"], steps + 1
        if terminated:
            break
        assert not truncated
    assert lost == 5
    assert env.ale.lives() == 0


@pytest.mark.parametrize("game", ["breakout", "qbert", "assault", "freeway", "hero"])
def test_an_episode_is_a_function_of_its_seed_and_its_actions(game):
    used, rng = AtariGame(game, sticky=0.25), np.random.default_rng(0)
    actions = rng.integers(used.action_space.n, size=80)

    def play(env, seed):
        rollout = [env.reset(seed=seed)[0].tobytes()]
        for action in actions:
            frame, reward, over, _, _ = env.step(int(action))
            rollout.append((frame.tobytes(), reward))
            if over:
                break
        return rollout

    first = play(AtariGame(game, sticky=0.25), 7)
    play(used, 8)
    assert play(used, 7) == first
    assert any(play(used, seed) != first for seed in range(9, 13))


def test_a_sticky_action_does_not_carry_over_a_reset():
    used = AtariGame("breakout", no_ops=0, sticky=0.5)
    right = [str(action) for action in used.action_set].index("Action.RIGHT")
    for seed in range(6):
        used.reset(seed=100 + seed)
        for _ in range(5):
            used.step(right)
        fresh = AtariGame("breakout", no_ops=0, sticky=0.5)
        used.reset(seed=seed)
        fresh.reset(seed=seed)
        for _ in range(5):
            np.testing.assert_array_equal(used.step(0)[0], fresh.step(0)[0])


def test_the_seed_samples_the_number_of_no_ops_from_zero_to_the_limit():
    env = AtariGame("breakout", no_ops=30)
    frames = set()
    for seed in range(200):
        env.reset(seed=seed)
        frames.add(env.ale.getEpisodeFrameNumber())
    start = raw("breakout").getEpisodeFrameNumber()
    assert {frame - start for frame in frames} == set(range(31))


def test_sticky_actions_repeat_the_previous_action_with_the_given_probability():
    env = AtariGame("breakout", no_ops=0, sticky=0.25)
    env.reset(seed=0)
    kept = 0
    for frame in range(4000):
        env._emulate(env.action_set[frame % 2])
        kept += env._last_action != env.action_set[frame % 2]
        if env.ale.game_over():
            env.ale.reset_game()
    # A Markov chain: the action differs from the requested one if the previous one was repeated and
    # differed from it.
    assert 0.15 < kept / 4000 < 0.25


@pytest.mark.parametrize("name", ["ALE/Pong-v5", "PongNoFrameskip-v4", "Pong-v0"])
def test_every_id_of_a_game_gets_the_same_preprocessing(name):
    env = make(name, compose("atari-paper", {}).environment)
    spec, actions = specs_of(env)
    assert (spec.tree.input_shape, spec.tree.dtype, actions.count) == ((4, 84, 84), "uint8", 6)
    first, _ = env.reset(seed=3)
    reference = make("ALE/Pong-v5", compose("atari-paper", {}).environment)
    np.testing.assert_array_equal(first, reference.reset(seed=3)[0])
    for action in (0, 2, 3, 2):
        here, there = env.step(action), reference.step(action)
        np.testing.assert_array_equal(here[0], there[0])


def area_by_repetition(screen, side):
    """Repeat every pixel until both sizes divide the number of copies, then take the means of blocks."""
    rows = screen.astype(np.float64).repeat(side, axis=0).reshape(side, len(screen), -1).mean(axis=1)
    return rows.repeat(side, axis=1).reshape(side, side, screen.shape[1]).mean(axis=2)


@pytest.mark.parametrize("game", ["pong", "breakout", "seaquest"])
def test_resize_area_is_the_mean_of_the_area_that_a_pixel_covers(game):
    settings = compose("atari-paper", {"resize": "area", "no_ops": 0, "stack": 1})
    env = make(f"ALE/{game.capitalize()}-v5", settings.environment)
    screens, rng = env.unwrapped._screens, np.random.default_rng(0)
    env.reset(seed=0)
    for _ in range(50):
        frame, *_ = env.step(int(rng.integers(env.action_space.n)))
        exact = area_by_repetition(screens.max(axis=0), 84)
        assert np.abs(frame - exact).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("side", [64, 84])
def test_the_frame_size_is_that_of_the_resized_screen(side):
    settings = compose("atari-paper", {"frame_size": side, "no_ops": 0, "stack": 1})
    env = make("ALE/Pong-v5", settings.environment)
    screens = env.unwrapped._screens
    env.reset(seed=0)
    frame, *_ = env.step(3)
    assert specs_of(env)[0].tree.shape == (side, side)
    np.testing.assert_array_equal(frame, shrink(screens.max(axis=0), side))


def test_an_area_average_preserves_a_constant_screen_and_the_mean_of_any_screen():
    plain = np.full((210, 160), 200, np.uint8)
    assert (area_average(plain, 84) == 200).all()
    noise = np.random.default_rng(0).integers(256, size=(210, 160), dtype=np.uint8)
    assert area_average(noise, 84).mean() == pytest.approx(noise.mean(), abs=0.05)

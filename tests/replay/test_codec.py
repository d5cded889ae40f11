"""Compressed frames are lossless for any content, and dictionaries adapt to the frames."""

import numpy as np
import pytest

from quantail.bench.replay import resident_bytes
from quantail.envs import make
from quantail.recipes import compose
from quantail.replay import codec
from quantail.replay.codec import BLOCK, FrameCodec
from quantail.replay.frames import CompressedFrames, PlainFrames, estimated_frame_bytes, make_frames
from quantail.spaces import LeafSpec, ObservationSpec

SPEC = LeafSpec((84, 84), "uint8", "hw", 4)


def game_level(number, count, rng):
    """Yield frames of one level of a game: a noisy background and a small object that moves over it."""
    scene = np.random.default_rng(number).integers(256, size=(84, 84), dtype=np.uint8)
    for _ in range(count):
        frame = scene.copy()
        y, x = rng.integers(80, size=2)
        frame[y : y + 4, x : x + 4] = 255
        yield frame


def read(frames, indices):
    out = np.zeros((len(indices), 84, 84), np.uint8)
    frames.read(np.array(indices), out)
    return out


def test_frames_are_restored_exactly_across_dictionaries_overwriting_and_repeats():
    rng = np.random.default_rng(0)
    capacity = 2 * BLOCK
    plain, compressed = PlainFrames(SPEC, capacity), CompressedFrames(SPEC, capacity)
    scenes = [
        *game_level(1, 1500, rng),
        *game_level(2, 1500, rng),
        *rng.integers(256, size=(50, 84, 84), dtype=np.uint8),
    ]
    for step, frame in enumerate(scenes):
        for frames in (plain, compressed):
            frames.put(step % capacity, frame)
    assert len(np.unique(compressed.numbers)) > 1
    wanted = rng.integers(capacity, size=500)
    np.testing.assert_array_equal(read(compressed, wanted), read(plain, wanted))


def test_a_new_level_gets_a_dictionary_and_a_revisited_level_reuses_its_own():
    rng = np.random.default_rng(0)
    coder, used = FrameCodec(SPEC), []
    for number in (1, 2, 1, 2):
        sizes = []
        for frame in game_level(number, 4 * BLOCK, rng):
            blob, dictionary = coder.encode(frame)
            sizes.append(len(blob))
        used.append(dictionary)
        assert len(coder.dictionaries) <= 3 * len(used)  # none is made that does not help
        assert np.mean(sizes[-BLOCK:]) < 100  # without a dictionary a frame takes 7,000 bytes
    assert used[1] != used[0]
    assert used[3] == used[1]
    assert len(coder.dictionaries) <= 6


def test_frames_with_nothing_in_common_create_no_dictionaries(monkeypatch):
    monkeypatch.setattr(codec, "BLOCK", 64)
    monkeypatch.setattr(codec, "FIRST_BLOCK", 64)
    rng = np.random.default_rng(0)
    coder = FrameCodec(SPEC)
    for frame in rng.integers(256, size=(1000, 84, 84), dtype=np.uint8):
        blob, number = coder.encode(frame)
        assert coder.decode([blob], [number]).tobytes() == frame.tobytes()
    assert len(coder.dictionaries) == 1


def test_the_number_of_dictionaries_is_bounded(monkeypatch):
    monkeypatch.setattr(codec, "BLOCK", 16)
    monkeypatch.setattr(codec, "FIRST_BLOCK", 16)
    monkeypatch.setattr(codec, "MAX_DICTIONARIES", 4)
    rng = np.random.default_rng(0)
    coder = FrameCodec(SPEC)
    for number in range(12):
        for frame in game_level(number, 32, rng):
            blob, dictionary = coder.encode(frame)
            assert coder.decode([blob], [dictionary]).tobytes() == frame.tobytes()
    assert len(coder.dictionaries) == 4


@pytest.mark.parametrize("game", ["Breakout", "MsPacman"])
def test_a_million_frames_of_a_real_game_would_fit_in_half_a_gigabyte(game):
    env = make(f"ALE/{game}-v5", compose("atari-paper", {}).environment)
    rng = np.random.default_rng(0)
    frames = CompressedFrames(SPEC, 1_000_000)
    observation, _ = env.reset(seed=0)
    for index in range(4 * BLOCK):
        frames.put(index, observation[-1])
        observation, _, terminated, truncated, _ = env.step(int(rng.integers(4)))
        if terminated or truncated:
            observation, _ = env.reset(seed=index)
    assert np.array_equal(read(frames, [4 * BLOCK - 1])[0], observation[-2])
    assert frames.remaining_bytes(1_000_000) < 0.5e9


def test_only_large_frames_of_bytes_are_compressed():
    assert isinstance(make_frames(SPEC, 10), CompressedFrames)
    assert isinstance(make_frames(LeafSpec((10, 10, 4), "bool", "hwc"), 10), PlainFrames)
    assert isinstance(make_frames(LeafSpec((84, 84), "float32", "hw"), 10), PlainFrames)
    assert estimated_frame_bytes(ObservationSpec({"": SPEC})) < 7056 / 10
    assert estimated_frame_bytes(ObservationSpec.array((10, 10, 4), "bool", "hwc")) == 400


def test_the_remaining_memory_is_estimated_from_the_stored_frames():
    frames = CompressedFrames(SPEC, 100)
    assert frames.remaining_bytes(100) == 0
    noise = np.random.default_rng(0).integers(256, size=(100, 84, 84), dtype=np.uint8)
    for _ in range(2):  # overwritten frames do not count twice
        for index in range(50):
            frames.put(index, noise[index])
        assert frames.remaining_bytes(1000) == pytest.approx(50 * 7100, rel=0.02)
        assert frames.remaining_bytes(10) == pytest.approx(10 * 7100, rel=0.02)
    for index in range(50):
        frames.put(index, np.zeros((84, 84), np.uint8))
    assert frames.remaining_bytes(1000) < 50 * 100
    for index in range(100):
        frames.put(index, noise[index])
    assert frames.remaining_bytes(1000) == 0


def test_frames_and_dictionaries_survive_files_in_any_order_and_stay_in_use():
    rng = np.random.default_rng(0)
    original = CompressedFrames(SPEC, 4 * BLOCK)
    scenes = [*game_level(1, 2 * BLOCK, rng), *game_level(2, 2 * BLOCK, rng)]
    for index, frame in enumerate(scenes):
        original.put(index, frame)
    assert len(np.unique(original.numbers)) > 2
    again = CompressedFrames(SPEC, 4 * BLOCK)
    parts = [np.arange(begin, begin + BLOCK) for begin in (3 * BLOCK, BLOCK, 0, 2 * BLOCK)]
    for indices in parts:  # in another order than when the dictionaries were made
        again.restore(indices, original.arrays(indices))
    assert not np.array_equal(again.numbers, original.numbers)
    assert set(again.codec.dictionaries) == {
        original.codec.dictionaries[n] for n in set(original.numbers)
    }
    np.testing.assert_array_equal(read(again, range(4 * BLOCK)), scenes)
    frame = next(game_level(2, 1, rng))
    again.put(0, frame)
    assert len(again.blobs[0]) < 100  # with a restored dictionary
    np.testing.assert_array_equal(read(again, [0, 1]), [frame, scenes[1]])


def test_frames_in_fortran_order_are_stored_correctly():
    frame = np.asfortranarray(next(game_level(1, 1, np.random.default_rng(0))))
    frames = CompressedFrames(SPEC, 1)
    frames.put(0, frame)
    np.testing.assert_array_equal(read(frames, [0])[0], frame)


def test_a_compressed_frame_takes_only_the_memory_of_its_compressed_bytes():
    rng = np.random.default_rng(0)
    frames = CompressedFrames(SPEC, 20_000)
    before = resident_bytes()
    for index, frame in enumerate(game_level(1, 20_000, rng)):
        frames.put(index, frame)
    assert resident_bytes() - before < 20e6  # 140 MB uncompressed

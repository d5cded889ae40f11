"""Compressed frames: nothing is lost, whatever the frames, and dictionaries follow what is seen."""

import sys

import numpy as np
import pytest

from quantail.bench.replay import resident_bytes
from quantail.envs import make
from quantail.observations import ObservationSpec
from quantail.recipes import compose
from quantail.replay import codec
from quantail.replay.codec import BLOCK, FrameCodec
from quantail.replay.frames import CompressedFrames, PlainFrames, frames_for, likely_bytes

SPEC = ObservationSpec((84, 84), "uint8", "hw", 4)


def level(number, count, rng):
    """Frames of one level of a game: one noisy scene, and a small thing that moves over it."""
    scene = np.random.default_rng(number).integers(256, size=(84, 84), dtype=np.uint8)
    for _ in range(count):
        frame = scene.copy()
        y, x = rng.integers(80, size=2)
        frame[y : y + 4, x : x + 4] = 255
        yield frame


def read(frames, slots):
    out = np.zeros((len(slots), 84, 84), np.uint8)
    frames.read(np.array(slots), out)
    return out


def test_frames_come_back_the_same_across_dictionaries_overwriting_and_repeats():
    rng = np.random.default_rng(0)
    slots = 2 * BLOCK
    plain, compressed = PlainFrames(SPEC, slots), CompressedFrames(SPEC, slots)
    scenes = [
        *level(1, 1500, rng),
        *level(2, 1500, rng),
        *rng.integers(256, size=(50, 84, 84), dtype=np.uint8),
    ]
    for place, frame in enumerate(scenes):
        for frames in (plain, compressed):
            frames.put(place % slots, frame)
    assert len(np.unique(compressed.numbers)) > 1
    wanted = rng.integers(slots, size=500)
    np.testing.assert_array_equal(read(compressed, wanted), read(plain, wanted))


def test_a_new_level_gets_a_dictionary_and_an_old_one_gets_its_own_back():
    rng = np.random.default_rng(0)
    coder, used = FrameCodec(SPEC), []
    for number in (1, 2, 1, 2):
        sizes = []
        for frame in level(number, 4 * BLOCK, rng):
            blob, dictionary = coder.encode(frame)
            sizes.append(len(blob))
        used.append(dictionary)
        assert len(coder.dictionaries) <= 3 * len(used)  # none is made where nothing is gained
        assert np.mean(sizes[-BLOCK:]) < 100  # a scene by itself takes 7,000
    assert used[1] != used[0]
    assert used[3] == used[1]
    assert len(coder.dictionaries) <= 6


def test_frames_without_anything_in_common_do_not_pile_up_dictionaries(monkeypatch):
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
    monkeypatch.setattr(codec, "MOST", 4)
    rng = np.random.default_rng(0)
    coder = FrameCodec(SPEC)
    for number in range(12):
        for frame in level(number, 32, rng):
            blob, dictionary = coder.encode(frame)
            assert coder.decode([blob], [dictionary]).tobytes() == frame.tobytes()
    assert len(coder.dictionaries) == 4


@pytest.mark.parametrize("game", ["Breakout", "MsPacman"])
def test_a_million_frames_of_a_real_game_would_fit_in_half_a_gigabyte(game):
    env = make(f"ALE/{game}-v5", compose("atari-paper", {}))
    rng = np.random.default_rng(0)
    frames = CompressedFrames(SPEC, 1_000_000)
    observation, _ = env.reset(seed=0)
    for slot in range(4 * BLOCK):
        frames.put(slot, observation[-1])
        observation, _, terminated, truncated, _ = env.step(int(rng.integers(4)))
        if terminated or truncated:
            observation, _ = env.reset(seed=slot)
    assert np.array_equal(read(frames, [4 * BLOCK - 1])[0], observation[-2])
    assert frames.bytes_missing(1_000_000) < 0.5e9


def test_only_large_frames_of_bytes_are_compressed():
    assert isinstance(frames_for(SPEC, 10), CompressedFrames)
    assert isinstance(frames_for(ObservationSpec((10, 10, 4), "bool", "hwc"), 10), PlainFrames)
    assert isinstance(frames_for(ObservationSpec((84, 84), "float32", "hw"), 10), PlainFrames)
    assert likely_bytes(SPEC) < 7056 / 10
    assert likely_bytes(ObservationSpec((10, 10, 4), "bool", "hwc")) == 400


def test_the_memory_still_missing_is_told_from_the_frames_that_are_there():
    frames = CompressedFrames(SPEC, 100)
    assert frames.bytes_missing(100) == 0
    noise = np.random.default_rng(0).integers(256, size=(100, 84, 84), dtype=np.uint8)
    for _ in range(2):  # what is overwritten does not count twice
        for slot in range(50):
            frames.put(slot, noise[slot])
        assert frames.bytes_missing(1000) == pytest.approx(50 * 7100, rel=0.02)
        assert frames.bytes_missing(10) == pytest.approx(10 * 7100, rel=0.02)
    for slot in range(50):
        frames.put(slot, np.zeros((84, 84), np.uint8))
    assert frames.bytes_missing(1000) < 50 * 100
    for slot in range(100):
        frames.put(slot, noise[slot])
    assert frames.bytes_missing(1000) == 0


def test_dictionaries_keep_their_frames_through_a_file_in_any_order_and_after():
    rng = np.random.default_rng(0)
    written = CompressedFrames(SPEC, 4 * BLOCK)
    scenes = [*level(1, 2 * BLOCK, rng), *level(2, 2 * BLOCK, rng)]
    for slot, frame in enumerate(scenes):
        written.put(slot, frame)
    assert len(np.unique(written.numbers)) > 2
    again = CompressedFrames(SPEC, 4 * BLOCK)
    parts = [np.arange(begin, begin + BLOCK) for begin in (3 * BLOCK, BLOCK, 0, 2 * BLOCK)]
    for slots in parts:  # numbered in another order than when they were learned
        again.restore(slots, written.arrays(slots))
    assert not np.array_equal(again.numbers, written.numbers)
    assert set(again.codec.dictionaries) == {written.codec.dictionaries[n] for n in set(written.numbers)}
    np.testing.assert_array_equal(read(again, range(4 * BLOCK)), scenes)
    frame = next(level(2, 1, rng))
    again.put(0, frame)
    assert len(again.blobs[0]) < 100  # with a dictionary that was restored
    np.testing.assert_array_equal(read(again, [0, 1]), [frame, scenes[1]])


def test_frames_of_a_file_written_before_they_were_compressed_are_taken_in():
    noise = np.random.default_rng(0).integers(256, size=(20, 84, 84), dtype=np.uint8)
    frames = CompressedFrames(SPEC, 20)
    frames.restore(np.arange(20), {"frames": noise})
    np.testing.assert_array_equal(read(frames, range(20)), noise)


def test_frames_in_another_order_of_memory_are_the_same_frames():
    frame = np.asfortranarray(next(level(1, 1, np.random.default_rng(0))))
    frames = CompressedFrames(SPEC, 1)
    frames.put(0, frame)
    np.testing.assert_array_equal(read(frames, [0])[0], frame)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_compressed_frame_takes_the_memory_of_its_bytes_and_not_of_the_frame():
    rng = np.random.default_rng(0)
    frames = CompressedFrames(SPEC, 20_000)
    before = resident_bytes()
    for slot, frame in enumerate(level(1, 20_000, rng)):
        frames.put(slot, frame)
    assert resident_bytes() - before < 20e6  # 140 MB as they are

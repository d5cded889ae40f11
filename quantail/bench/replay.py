"""Benchmark inserting into and sampling from a replay of real frames, up to the paper's size."""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import psutil
import torch

from quantail.bench.measure import Row, race
from quantail.bench.scenes import Scenes, play
from quantail.replay import SAMPLERS, Replay, ReplayStore

GAMES = ("Breakout", "Pong", "Seaquest", "MsPacman")
STEPS = 20_000  # of real play per game; a larger replay repeats them
SIZES = (10_000, 100_000, 1_000_000)
BATCH, N_STEP, DISCOUNT = 32, 3, 0.99


def rows(seconds: float) -> Iterator[Row]:
    """Yield rows for growing replay sizes on one game, then for a full replay of each game."""
    for game in GAMES:
        scenes = play(f"ALE/{game}-v5", "atari-paper", STEPS)
        yield _insert(game, scenes, scenes.store(SIZES[0]), seconds)
        release_memory()
        before = resident_bytes()
        store = ReplayStore(scenes.observation, 1, SIZES[-1])
        for size in SIZES:
            scenes.add(store, int(store.written[0]), size)
            if size < SIZES[-1] and game != GAMES[0]:
                continue
            used = resident_bytes() - before if size == SIZES[-1] else 0
            for kind in SAMPLERS:
                yield _sample(game, store, kind, seconds, used)
        del store


def release_memory() -> None:
    """Return freed memory to the system, so that the size of the next replay can be measured."""
    gc.collect()
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)


def resident_bytes() -> int:
    """Return the resident memory of this process."""
    return int(psutil.Process().memory_info().rss)


def _insert(game: str, scenes: Scenes, store: ReplayStore, seconds: float) -> Row:
    count = 500
    frames = scenes.frames[:count].copy()
    into = np.empty_like(frames)

    def add() -> None:
        begin = int(store.written[0])
        scenes.add(store, begin, begin + count)

    def copy() -> None:
        for index in range(count):
            into[index] = frames[index]

    return race("replay", f"{game} insert", add, copy, min(seconds, 2.0), scale=count)


def _sample(game: str, store: ReplayStore, kind: str, seconds: float, used: int) -> Row:
    sampler = SAMPLERS[kind](store, np.random.default_rng(0), SAMPLERS[kind].Config())
    replay = Replay(store, sampler, BATCH, N_STEP, DISCOUNT)
    priorities = torch.rand(BATCH)
    rng = np.random.default_rng(1)
    (leaf,) = store.spec.leaves.values()
    batch = np.zeros((2 * BATCH, *leaf.input_shape), np.uint8)
    somewhere = rng.integers(256, size=(2048, *leaf.shape), dtype=np.uint8)

    def sample() -> None:
        replay.update_priorities(replay.sample(0.4).indices, priorities)

    def copy() -> None:
        rows = rng.integers(len(somewhere), size=batch.shape[:2])
        np.take(somewhere, rows, axis=0, out=batch, mode="clip")

    more = {"store_mb": round(used / 1e6, 1)} if used else {}
    setting = f"{game} {kind} of {len(store):,}"
    return race("replay", setting, sample, copy, min(seconds, 2.0), **more)

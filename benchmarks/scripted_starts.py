"""Record the games of a scripted player that ship with the package.

    python benchmarks/scripted_starts.py [--out DIR]

The player reads the positions of ball and paddle from the console's memory and follows the ball. It has
random lapses of attention, so that its games are good but all different.
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import quantail
from quantail.envs.make import make_player, player_conditions
from quantail.evaluation.starts import Game, Recording, played_marks

BANK = Path(quantail.__file__).parent / "evaluation" / "reference" / "starts"
GAMES, FRAMES = 3, 3000
GLANCE = 2  # frames between two readings of the memory
LAPSE, LAPSE_FRAMES = 0.004, 30  # probability of a lapse at a reading, and its length in frames
NOOP, FIRE, RIGHT, LEFT = 0, 1, 3, 4

Memory = NDArray[np.uint8]


def follow(target: int, paddle: int, more: int, less: int, slack: int) -> int:
    """Return the action that moves the paddle towards its target."""
    if abs(target - paddle) <= slack:
        return NOOP
    return more if target > paddle else less


def breakout(memory: Memory, aim: int) -> int:
    ball_x, ball_y, paddle = (int(memory[address]) for address in (99, 101, 72))
    return follow(ball_x + aim, paddle, RIGHT, LEFT, slack=4) if ball_y else FIRE


def pong(memory: Memory, aim: int) -> int:
    ball_y, paddle = (int(memory[address]) for address in (54, 51))
    return follow(ball_y + aim, paddle, LEFT, RIGHT, slack=4) if ball_y else NOOP


PLAYERS: dict[str, Callable[[Memory, int], int]] = {"ALE/Breakout-v5": breakout, "ALE/Pong-v5": pong}
AIMS = (-13, -1)  # range of the offset between ball and paddle


def play(env: str, seed: int) -> Game:
    """Play one game of at most FRAMES frames."""
    generator = np.random.default_rng(seed)
    player = make_player(env)
    player.reset(seed=seed)
    actions: list[int] = []
    score, over, action, aim, until = 0.0, False, NOOP, 0, 0
    while not over and len(actions) < FRAMES:
        frame = len(actions)
        if frame >= until:
            until = frame + GLANCE
            if generator.random() < LAPSE:
                action, until = int(generator.choice([NOOP, RIGHT, LEFT])), frame + LAPSE_FRAMES
            else:
                aim = int(generator.integers(*AIMS)) if frame % 100 < GLANCE else aim
                action = PLAYERS[env](player.unwrapped.ale.getRAM(), aim)  # type: ignore[attr-defined]
        _, reward, over, _, _ = player.step(action)
        actions.append(action)
        score += reward
    player.close()
    return Game(seed, tuple(actions), score, played_marks(env, seed, tuple(actions)))


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=BANK)
    out = parser.parse_args(words).out
    for env in PLAYERS:
        games = tuple(play(env, seed) for seed in range(GAMES))
        file = out / f"{env.removeprefix('ALE/').removesuffix('-v5').lower()}-scripted.jsonl"
        Recording(env, "scripted player", player_conditions(env), games).write(file)
        scores = ", ".join(f"{game.score:g} in {len(game.actions):,} frames" for game in games)
        print(f"{env}: {scores}; {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

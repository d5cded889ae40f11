"""Make the recordings of a scripted player that come with the package.

    python benchmarks/scripted_starts.py [--out DIR]

The player looks at the ball and at its paddle in the console's memory, follows the ball, and has lapses,
so that its games are good ones and no two of them are alike.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import quantail
from quantail.envs.player import make_player, player_conditions
from quantail.evaluation.starts import Game, Recording, played_marks

BANK = Path(quantail.__file__).parent / "evaluation" / "reference" / "starts"
GAMES, FRAMES = 3, 3000
GLANCE = 2  # frames between two looks
LAPSE, LAPSE_FRAMES = 0.004, 30  # chance of one at a look, and how long it is
NOOP, FIRE, RIGHT, LEFT = 0, 1, 3, 4

Memory = NDArray[np.uint8]


def follow(target: int, paddle: int, more: int, less: int, slack: int) -> int:
    """The action that brings the paddle towards its target."""
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
AIMS = (-13, -1)  # how far from the ball the paddle is held


def play(env: str, seed: int) -> Game:
    """One game, cut after some thousand frames."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=BANK)
    out = parser.parse_args().out
    for env in PLAYERS:
        games = tuple(play(env, seed) for seed in range(GAMES))
        file = out / f"{env.removeprefix('ALE/').removesuffix('-v5').lower()}-scripted.jsonl"
        Recording(env, "scripted player", player_conditions(env), games).write(file)
        told = ", ".join(f"{game.score:g} in {len(game.actions):,} frames" for game in games)
        print(f"{env}: {told}; {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

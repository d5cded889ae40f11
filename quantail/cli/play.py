"""quantail play ENV --record FILE"""

from pathlib import Path

from quantail.cli.parser import Parser, number, whole
from quantail.envs.player import player_conditions
from quantail.errors import QuantailError
from quantail.evaluation.starts import Recording, read_recording
from quantail.files import require_writable
from quantail.training.progress import counted
from quantail.viewing.window import Play

BY = "a person"
FASTEST, LARGEST = 1000, 20  # actions a second; times the size of the picture


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail play",
        description="Play an environment with the keyboard, in a window, and record the games: an "
        "agent's evaluation can then begin at any moment of them (`quantail eval RUN --protocol "
        "human-starts --starts FILE`). ALE and MinAtar games take the arrow keys or WASD, and space "
        "fires; any other environment with discrete actions takes the keys 1 to 9. P pauses, R ends "
        "a game and starts the next, Esc or closing the window ends; every game is in the file as "
        "soon as it ends.",
    )
    parser.add_argument("env", metavar="ENV", help="id of an environment, as ALE/Breakout-v5")
    parser.add_argument(
        "--record", metavar="FILE", required=True, help="where the games go; games of before stay in it"
    )
    parser.add_argument(
        "--seed", metavar="S", help="seed of the first game, then S+1, ... [0, or after those in FILE]"
    )
    parser.add_argument(
        "--fps",
        metavar="F",
        help="actions a second, 0 for no limit [ALE 60, MinAtar 8, else the environment's own]",
    )
    parser.add_argument(
        "--scale",
        metavar="N",
        help="size of the picture, from 1 to 20 [one that is about 600 pixels high]",
    )
    arguments = parser.parse(words)
    seed = None if arguments.seed is None else whole("seed", arguments.seed, 0)
    fps = None if arguments.fps is None else number("fps", arguments.fps, FASTEST)
    scale = None if arguments.scale is None else whole("scale", arguments.scale, 1)
    if scale is not None and scale > LARGEST:
        raise QuantailError(f"scale takes a whole number from 1 to {LARGEST}, not {scale}.")
    file = Path(arguments.record)
    before = recording_at(file, arguments.env)
    if seed is None:
        seed = max((game.seed + 1 for game in before.games), default=0)
    play = Play(arguments.env, file, before, seed=seed, fps=fps, scale=scale)
    try:
        stop = play.run()
    finally:
        print(_summary(play.recording, len(before.games), file))
    stop.end_as_asked()
    return 0


def recording_at(file: Path, env: str) -> Recording:
    """The recording to go on with, empty where there is none; another one's is refused."""
    conditions = player_conditions(env)
    require_writable(file)
    if not file.exists():
        return Recording(env, BY, conditions, ())
    recording = read_recording(file)
    if recording.conditions.get("env") != conditions["env"]:
        raise QuantailError(f"{file} holds games of {recording.env}, not of {env}: name another file.")
    if recording.conditions != conditions:
        raise QuantailError(
            f"{file} holds games of {recording.env} under other conditions than here: name another file."
        )
    if recording.by != BY:
        raise QuantailError(f"{file} holds games by {recording.by!r}, not by {BY!r}: name another file.")
    return recording


def _summary(recording: Recording, before: int, file: Path) -> str:
    new = len(recording.games) - before
    if not new:
        return f"no game was played, so {file} is as it was."
    moments = sum(len(game.actions) - 1 for game in recording.games)
    total = f", {len(recording.games)} in all" if before else ""
    return (
        f"recorded {counted(new, 'game')}{total}, {moments:,} moments to start from, in {file}\n"
        f"next: quantail eval RUN --protocol human-starts --starts {file}"
    )

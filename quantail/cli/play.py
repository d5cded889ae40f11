"""quantail play ENV --record FILE"""

from pathlib import Path

from quantail.cli.parser import Parser
from quantail.envs.make import player_conditions
from quantail.errors import QuantailError
from quantail.evaluation.starts import Recording, read_recording
from quantail.files import require_writable
from quantail.text import counted
from quantail.validation import number, whole_number
from quantail.viewing.window import Play

BY = "a person"
FASTEST, LARGEST = 1000, 20  # actions per second; scale factor of the picture


def run(words: list[str]) -> int:
    parser = Parser(
        prog="quantail play",
        description="Play an environment in a window with the keyboard and record the games, so that "
        "agents can be evaluated from states of these games (`quantail eval RUN --protocol "
        "human-starts --starts FILE`). Use the arrow keys or WASD and space to fire in ALE and MinAtar "
        "games, and the keys 1 to 9 in other environments with discrete actions. P pauses, R ends the "
        "game and starts the next one, Esc or closing the window quits. Games are saved when they end.",
    )
    parser.add_argument("env", metavar="ENV", help="environment id, such as ALE/Breakout-v5")
    parser.add_argument(
        "--record", metavar="FILE", required=True, help="file for the games; new games are appended"
    )
    parser.add_argument(
        "--seed",
        metavar="S",
        help="seed of the first game, then S+1, ... [0, or the next one after those in FILE]",
    )
    parser.add_argument(
        "--fps",
        metavar="F",
        help="actions per second, 0 for no limit [ALE 60, MinAtar 8, else the environment's own]",
    )
    parser.add_argument(
        "--scale",
        metavar="N",
        help="scale factor of the picture, from 1 to 20 [about 600 pixels high]",
    )
    arguments = parser.parse(words)
    seed = None if arguments.seed is None else whole_number("seed", arguments.seed, 0)
    fps = None if arguments.fps is None else number("fps", arguments.fps, 0, FASTEST)
    scale = None if arguments.scale is None else whole_number("scale", arguments.scale, 1, LARGEST)
    file = Path(arguments.record)
    before = recording_at(file, arguments.env)
    if seed is None:
        seed = max((game.seed + 1 for game in before.games), default=0)
    play = Play(arguments.env, file, before, seed=seed, fps=fps, scale=scale)
    try:
        stop = play.run()
    finally:
        print(_summary(play.recording, len(before.games), file))
    stop.raise_signal()
    return 0


def recording_at(file: Path, env: str) -> Recording:
    """Return the recording to append to, empty if there is no file; refuse one that does not fit."""
    conditions = player_conditions(env)
    require_writable(file)
    if not file.exists():
        return Recording(env, BY, conditions, ())
    recording = read_recording(file)
    if recording.conditions.get("env") != conditions["env"]:
        raise QuantailError(f"{file} holds games of {recording.env}, not of {env}: name another file.")
    if recording.conditions != conditions:
        raise QuantailError(
            f"{file} holds games of {recording.env} under other conditions: name another file."
        )
    if recording.by != BY:
        raise QuantailError(f"{file} holds games by {recording.by!r}, not by {BY!r}: name another file.")
    return recording


def _summary(recording: Recording, before: int, file: Path) -> str:
    new = len(recording.games) - before
    if not new:
        return f"no game was played, so {file} is unchanged."
    moments = sum(len(game.actions) - 1 for game in recording.games)
    total = f", {len(recording.games)} in all" if before else ""
    return (
        f"recorded {counted(new, 'game')}{total}, {moments:,} moments to start from, in {file}\n"
        f"next: quantail eval RUN --protocol human-starts --starts {file}"
    )

"""The protocol of a run in words: what makes its scores comparable with others, or not."""

from pathlib import Path
from typing import Any

from quantail.envs import make
from quantail.runs.folder import RunFolder, RunInfo


def protocol_text(folder: Path, episodes: int) -> str:
    """Describe the game and the final evaluation of a run: sticky actions, ramping, action set, ε."""
    info = RunFolder(folder).read()
    protocol = info.protocol
    words = _game(info)
    words.append(f"ε {protocol.epsilon:g}")
    if protocol.no_ops:
        words.append(f"up to {protocol.no_ops} no-ops")
    if protocol.action_repeat > 1:
        words.append(f"each action repeated for {protocol.action_repeat} frames")
    if protocol.max_frames:
        words.append(f"at most {protocol.max_frames:,} frames an episode")
    words.append(f"{episodes} episodes with the last weights")
    return ", ".join(words)


def _game(info: RunInfo) -> list[str]:
    """Describe what the environment itself does, from the environment as it is made."""
    env = make(info.env, info.config.environment)
    try:
        actions = f"{info.actions.count} actions"
        game: Any = getattr(env.unwrapped, "game", None)
        if not hasattr(game, "sticky_action_prob"):  # only MinAtar's games have it
            return [f"sticky actions {info.protocol.sticky:g}", actions]
        minimal = info.actions.count < game.num_actions()
        ramping = {True: "ramping", False: "no ramping", None: "a game without ramping"}
        return [
            f"sticky actions {game.sticky_action_prob:g}",
            ramping[getattr(game.env, "ramping", None)],
            f"{actions} ({'minimal' if minimal else 'all'})",
        ]
    finally:
        env.close()

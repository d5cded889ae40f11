"""The family of ALE games."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self, cast

import gymnasium as gym

from quantail.envs.ale.game import AtariGame, rom_path
from quantail.envs.family import EnvFamily, entry_point
from quantail.envs.human import JOYSTICK, Controls, HumanPlay
from quantail.extras import require_extra
from quantail.parts import Group
from quantail.settings import MACHADO, NATURE, OURS, setting

Env = gym.Env[Any, Any]

FORMS = ("ALE/", "NoFrameskip-v")  # parts of the ids of ALE games
CONSOLE = {(0, 0): 0, (0, 1): 2, (1, 0): 3, (-1, 0): 4, (0, -1): 5}  # actions by direction (x, y)
CONSOLE |= {(1, 1): 6, (-1, 1): 7, (1, -1): 8, (-1, -1): 9}


@dataclass(frozen=True)
class AleConfig(Group):
    """The settings that only ALE games have."""

    action_repeat: int = setting(
        1,
        "number of frames for which each action is repeated (frame skip)",
        unit="frames",
        source=OURS,
        least=1,
    )
    no_ops: int = setting(
        0,
        "maximum number of no-op actions at the start of an episode, sampled uniformly",
        unit="frames",
        source=OURS,
        least=0,
    )
    sticky: float = setting(
        0.0,
        "sticky actions, the probability at each frame that the previous action is repeated",
        source=MACHADO,
        least=0,
        most=1,
    )
    resize: str = setting(
        "bilinear",
        "interpolation for resizing the screen; Dopamine and the original DQN use area",
        source="DQN Zoo, Quan and Ostrovski 2020",
        choices=("bilinear", "area"),
    )
    frame_size: int = setting(
        84,
        "height and width to which the screen is resized",
        unit="pixels",
        source=NATURE,
        least=1,
    )
    life_loss_ends: bool = setting(
        False,
        "treat the loss of a life as terminal for learning; the episode continues",
        source=OURS,
    )


class ConsolePlay(HumanPlay):
    """A person plays frame by frame, with all 18 actions of the console."""

    unit = "frames"
    pixel_width = 2

    def conditions(self, env: str) -> dict[str, Any]:
        require_extra("atari", env)
        game, options = game_of(env)
        path = rom_path(game)
        checksum = hashlib.md5(Path(path).read_bytes()).hexdigest() if path else "none"
        return {
            "env": f"ALE {game}",
            "rom": checksum,
            **options,
            "actions": "console",
            "action_repeat": 1,
            "no_ops": 0,
            "sticky": 0.0,
        }

    def controls(self, env: Env) -> Controls:
        return Controls(console_action, "Arrow keys or WASD move, space fires", 60)

    def advance(self, env: Env, actions: Sequence[int]) -> Any:
        return cast("AtariGame", env.unwrapped).fast_forward(actions)

    def start(self, env: Env, seed: int, actions: Sequence[int]) -> Any:
        return env.reset(seed=seed, options={"actions": actions})[0]


class Ale(EnvFamily):
    """Atari games with the preprocessing of the paper, whatever the defaults of their ids are."""

    Config = AleConfig
    config: AleConfig
    title = "ALE games"
    preset = "atari-paper"
    extra = "atari"
    human = ConsolePlay()
    all_actions = False  # whether an environment has all 18 actions of the console

    def recognises(self, env: str) -> bool:
        """Return whether it is an id of ale-py, or has the form of one where ale-py is not installed."""
        has_form = ":" not in env and any(part in env for part in FORMS)
        return entry_point(env).startswith("ale_py.env") or (has_form and not _is_installed())

    def register_ids(self) -> None:
        _is_installed()

    def make(self, env: str, render_mode: str | None = None) -> Env:
        game, options = game_of(env)
        return AtariGame(
            game,
            action_repeat=self.config.action_repeat,
            no_ops=self.config.no_ops,
            sticky=self.config.sticky,
            resize=self.config.resize,
            frame_size=self.config.frame_size,
            mode=options["mode"],
            difficulty=options["difficulty"],
            all_actions=self.all_actions,
            render_mode=render_mode,
        )

    def owns(self, env: Env) -> bool:
        return isinstance(env.unwrapped, AtariGame)

    @property
    def frames_per_step(self) -> int:
        return self.config.action_repeat

    def ends_return(self, terminated: bool, info: Mapping[str, Any]) -> bool:
        return terminated or (self.config.life_loss_ends and bool(info.get("life_lost", False)))

    def remarks(self) -> list[str]:
        if not self.config.life_loss_ends:
            return []
        return ["a lost life ends a return, as in training; intervals are computed over whole games"]

    def conditions(self) -> dict[str, Any]:
        """Leave out how the agent sees the screen and where its returns end: games are the same."""
        own = super().conditions()
        return {name: own[name] for name in ("no_ops", "sticky", "action_repeat")}

    def action_names(self, env: Env) -> Sequence[str]:
        return [action.name.lower() for action in cast("AtariGame", env.unwrapped).action_set]

    def for_human(self) -> Self:
        """Return the family without action repeat, no-ops and sticky actions, with all 18 actions."""
        family = super().for_human()
        family.all_actions = True
        return family

    def check(self) -> str:
        from ale_py import roms

        self.make("ALE/Pong-v5").reset(seed=0)
        return f"ale-py {version('ale-py')}, {len(roms.get_all_rom_ids())} ROMs, Pong works"


def console_action(keys: list[str]) -> int:
    """Return which of the 18 ALE actions the keys mean together; opposite directions cancel out."""
    down = {JOYSTICK.get(key) for key in keys}
    action = CONSOLE[("r" in down) - ("l" in down), ("u" in down) - ("d" in down)]
    return action if "f" not in down else action + 8 if action else 1


def game_of(env: str) -> tuple[str, dict[str, int | None]]:
    """Return the game of an id, and its mode and difficulty (None for the default)."""
    options = gym.registry[env].kwargs
    return options["game"], {name: options.get(name) for name in ("mode", "difficulty")}


def _is_installed() -> bool:
    """Return whether ale-py is installed; importing it registers its ids with Gymnasium."""
    try:
        import ale_py  # noqa: F401
    except ImportError:
        return False
    return True

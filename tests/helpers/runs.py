"""Small real runs, in this process or in one that can be killed."""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import gymnasium as gym

from quantail.cli.main import run
from quantail.recipes import AGENTS
from quantail.training.callbacks import Callback

TINY = {
    "learning_starts": 60,
    "epsilon_steps": 100,
    "buffer_size": 150,
    "target_update_interval": 40,
    "evaluation_every": 100,
    "evaluation_episodes": 2,
    "log_every": 20,
    "checkpoint_every": 50,
    "batch_size": 8,
    "head_size": 16,
    "n_step": 2,
    "threads": 1,
}
QUICK = {
    "CartPole-v1": TINY | {"mlp_sizes": [16], "stack": 2},
    "MinAtar/Breakout-v1": TINY,
    "ALE/Breakout-v5": TINY
    | {
        "online_samples": 2,
        "target_samples": 3,
        "policy_samples": 2,
        "evaluation_steps": 0,
        "max_episode_steps": 70,
        "num_envs": 2,
    },
}


def quick(agent, env="CartPole-v1"):
    """Return the settings for a tiny run of an agent."""
    settings = QUICK[env] | {"agent": agent}
    if AGENTS[agent].parts.get("target") == "munchausen":
        settings["n_step"] = 1
    if AGENTS[agent].parts["head"] != "implicit":
        settings = {k: v for k, v in settings.items() if not k.endswith("_samples")}
    return settings


class ShiftedCartPole(gym.ActionWrapper):
    """CartPole whose actions are 5 and 6."""

    def __init__(self):
        super().__init__(gym.make("CartPole-v1"))
        self.action_space = gym.spaces.Discrete(2, start=5)

    def action(self, action):
        assert action in (5, 6)
        return action - 5


def flags(settings):
    words = []
    for name, value in settings.items():
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        words += [f"--{name.replace('_', '-')}", text]
    return words


def command(*words):
    """Run the command in this process and return its exit status."""
    return run([str(word) for word in words])


def quantail(*words, **options):
    """Run the command in a new process."""
    return subprocess.run(
        [sys.executable, "-m", "quantail", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        **options,
    )


def kill_when(condition, *words, how=signal.SIGKILL, **options):
    """Start the command and send it a signal once the condition holds; return its status and stderr."""
    process = subprocess.Popen(
        [sys.executable, "-m", "quantail", *map(str, words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        # Waits for a moment, because a loop without a pause would take a core from the command.
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.005)
            raise AssertionError(process.communicate()[1])
    process.send_signal(how)
    _, said = process.communicate(timeout=100)
    return process.returncode, said


def killed_at(event, name, *words):
    """Run the command and kill it just before an event on a path that ends with `name`.

    `event` is one of Python's audit events: "open", "os.mkdir", "os.rename", "os.remove" or "os.rmdir".
    """
    code = (
        "import os, signal, sys\n"
        "event, name = sys.argv[1:3]\n"
        "def hook(what, args):\n"
        "    if what == event and str(args[0]).endswith(name):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "sys.addaudithook(hook)\n"
        "from quantail.cli.main import main\n"
        "main(sys.argv[3:])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, event, name, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr


class Listening(Callback):
    """A callback that keeps the description of the run and its warnings."""

    def __init__(self):
        self.lines, self.warnings = {}, []

    def on_start(self, progress):
        self.lines = progress.description

    def on_warning(self, progress):
        self.warnings.append(progress.warning)


def rows(run, table):
    path = Path(run) / f"{table}.csv"
    return path.read_text().splitlines()[1:] if path.exists() else []


def same_learning(a, b):
    """Check that two runs have identical weights, state, tables and random generators."""
    a, b = Path(a), Path(b)
    for table in ("metrics", "episodes", "evaluations"):
        assert (a / f"{table}.csv").read_bytes() == (b / f"{table}.csv").read_bytes(), table
    names = [(run / "checkpoints" / "last").read_text().strip() for run in (a, b)]
    assert names[0] == names[1]
    here, there = (run / "checkpoints" / names[0] for run in (a, b))
    files = [{path.name for path in folder.glob("*.safetensors")} for folder in (here, there)]
    assert files[0] == files[1]
    assert files[0] >= {"agent.safetensors", "learner.safetensors", "collector.safetensors"}
    for name in files[0]:
        assert (here / name).read_bytes() == (there / name).read_bytes(), name
    states = [json.loads((path / "state.json").read_text()) for path in (here, there)]
    assert states[0].keys() == states[1].keys()
    for key in states[0].keys() - {"clock", "metrics", "replay", "checksum"}:  # times and segments
        assert states[0][key] == states[1][key], key
    assert (a / "checkpoints" / "best").read_bytes() == (b / "checkpoints" / "best").read_bytes()
    return True


def prepare(env, *, out, callbacks=(), **settings):
    """Return the trainer of a run, given its settings."""
    from quantail.recipes import configure
    from quantail.training import train

    return train.prepare(env, configure(env, **settings), out=out, callbacks=callbacks)

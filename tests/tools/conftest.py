import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
QUEUE = """
[[study]]
name = "tiny"
title = "Tiny"
envs = ["CartPole-v1"]
agents = ["dqn"]
preset = "small"
seeds = [0, 1]
steps = 600
evaluation_every = 300
evaluation_episodes = 2
final_episodes = 3
settings = { learning_starts = 200, checkpoint_every = 200 }
"""


class Home:
    """A clone in which a small queue can be run."""

    def __init__(self, path):
        self.path = path
        self.results = path / "results"
        self.site = path / "runs" / ".results"

    def git(self, *words):
        who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
        command = ["git", *who, *words]
        done = subprocess.run(command, cwd=self.path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def command(self, *words):
        python = ["--python", sys.executable] if words[0] in ("run", "pong") else []
        return [sys.executable, "-m", "tools.results", *words, *python]

    def start(self, *words, **options):
        """Start a command of the queue in a process of its own."""
        environment = os.environ | {"PYTHONPATH": str(self.path), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            self.command(*words), cwd=self.path, env=environment, text=True, **options
        )

    def call(self, *words):
        """Run a command of the queue to its end; return its exit code, output and errors."""
        child = self.start(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = child.communicate(timeout=600)
        return child.returncode, out, errors

    def clone(self, path):
        subprocess.run(["git", "clone", "-q", str(self.path), str(path)], check=True)
        return Home(path)


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """A repository with the files of the working tree and a queue of two short runs."""
    home = Home(tmp_path_factory.mktemp("template") / "home")
    home.path.mkdir()
    for name in ("quantail", "tools"):
        shutil.copytree(
            ROOT / name, home.path / name, ignore=shutil.ignore_patterns("__pycache__", "*.so")
        )
    for name in ("Makefile", "pyproject.toml", "requirements.lock", ".gitignore", ".gitattributes"):
        shutil.copy(ROOT / name, home.path / name)
    home.results.mkdir()
    (home.results / "queue.toml").write_text(QUEUE)
    home.git("init", "-q")
    home.git("add", "-A")
    home.git("commit", "-qm", "Everything")
    return home


@pytest.fixture
def home(template, tmp_path):
    """A new clone of the template."""
    return template.clone(tmp_path / "home")

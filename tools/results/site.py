"""Where a queue works: a folder below runs/ with a git worktree of one commit and its environment."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from quantail.errors import QuantailError
from quantail.files import write_text
from tools.children import dies_with_parent
from tools.results.table import Tables

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Site:
    """The folders of a queue. `home` is the clone in which it was started."""

    home: Path
    name: str = ".results"

    @property
    def folder(self) -> Path:
        return self.home / "runs" / self.name

    @property
    def worktree(self) -> Path:
        return self.folder / "worktree"

    @property
    def lock(self) -> Path:
        """Held by the process that works here."""
        return self.folder / "lock"

    @property
    def request(self) -> Path:
        """Holds the commit that the queue should take between two runs, if it was told to."""
        return self.folder / "update"

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def tables(self) -> Tables:
        return Tables(self.results, self.folder / "finished")

    def log(self, name: str) -> Path:
        """The file for what a process prints about its errors."""
        self.logs.mkdir(parents=True, exist_ok=True)
        return self.logs / f"{name}.txt"

    def run(self, identifier: str) -> Path:
        return self.runs / identifier

    def commit_file(self, identifier: str) -> Path:
        """Holds the commit that an unfinished run was started with."""
        return self.runs / f"{identifier}.commit"


def git(folder: Path, *words: str) -> str:
    """Return what a git command prints; raise an error with its own message if it fails."""
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise QuantailError(f"git {words[0]} failed in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def head(folder: Path) -> str:
    """Return the commit that a clone or worktree is at."""
    return git(folder, "rev-parse", "HEAD")


def prepare(site: Site, commit: str, python: str = "") -> Path:
    """Bring the worktree to a commit, with an environment of its own; return its interpreter.

    `python` is an interpreter to use instead of an own environment.
    """
    site.folder.mkdir(parents=True, exist_ok=True)
    if (site.worktree / ".git").exists():
        git(site.worktree, "checkout", "--quiet", "--detach", "--force", commit)
    else:
        git(site.home, "worktree", "prune")
        git(site.home, "worktree", "add", "--quiet", "--force", "--detach", str(site.worktree), commit)
    if python:
        return Path(python)
    print("preparing the worktree's environment; a new one takes about a minute", flush=True)
    log = site.log("environment")
    with log.open("wb") as file:
        done = subprocess.run(
            ["make", ".venv/installed"],
            cwd=site.worktree,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=dies_with_parent(),
            env={k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")},
            check=False,
        )
    if done.returncode:
        raise QuantailError(f"the environment of {commit[:7]} could not be made: see {log}.")
    return site.worktree / ".venv" / "bin" / "python"


def launch(site: Site, commit: str, words: list[str], python: str = "") -> None:
    """Continue as the process that works from the worktree; this does not return."""
    interpreter = prepare(site, commit, python)
    arguments = json.dumps({"home": str(site.home), "site": site.name, "python": python})
    command = [str(interpreter), "-m", "tools.results", "work", arguments, *words]
    sys.stdout.flush()
    os.chdir(site.worktree)
    os.execve(command[0], command, environment(site))


def environment(site: Site) -> dict[str, str]:
    """Return the environment variables of processes that run the worktree's code."""
    dropped = ("PYTHONSTARTUP", "PYTHONHOME")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PYTHONPATH": str(site.worktree), "OMP_NUM_THREADS": "1"}


def request_update(site: Site) -> str:
    """Ask the queue to take the commit at which its clone is now; return that commit."""
    commit = head(site.home)
    write_text(site.request, commit)
    return commit


def take_request(site: Site, present: str) -> str:
    """Return the commit that was asked for, if it is another than the present one, and forget it."""
    if not site.request.exists():
        return ""
    commit = site.request.read_text(encoding="utf-8").strip()
    site.request.unlink()
    return commit if commit != present else ""

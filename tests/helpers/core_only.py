"""An environment with nothing but what `pip install quantail` brings, made without pip."""

import json
import subprocess
import tomllib
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import quantail

ROOT = Path(quantail.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from quantail.cli.main import run
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = run(words)
        except SystemExit as left:
            status = left.code or 0
    answers.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


class CoreOnly:
    """A virtual environment that holds the packages of `dependencies`, and what they need themselves."""

    def __init__(self, folder):
        self.folder = folder
        venv.create(folder / "venv")
        self.python = folder / "venv/bin/python"
        (packages,) = folder.glob("venv/lib/python*/site-packages")
        for name in {part for one in core_distributions() for part in top_level(one)}:
            (packages / name.name).symlink_to(name)
        (packages / "quantail").symlink_to(ROOT / "quantail")
        metadata = packages / f"quantail-{quantail.__version__}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Name: quantail\nVersion: {quantail.__version__}\n")

    def run_code(self, code, *words):
        """Run Python code in a new process of this environment, and return what it prints."""
        done = subprocess.run(
            [self.python, "-I", "-c", code, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run_commands(self, *commands):
        """Run commands one after another in one process; return each one's status, output and errors."""
        words = [[str(word) for word in command] for command in commands]
        return json.loads(self.run_code(COMMANDS, json.dumps(words)))


def core_distributions():
    """Return the installed distributions that the core needs, directly or not."""
    found, waiting = {}, [Requirement(text) for text in PROJECT["dependencies"]]
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # a package that only other platforms use
        for text in found[name].requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed)
    return list(found.values())


def top_level(one):
    """Return the files and folders of a distribution that lie in site-packages itself."""
    parts = {file.parts[0] for file in one.files if file.parts[0] not in ("..", "__pycache__")}
    return {Path(one.locate_file(part)) for part in parts}

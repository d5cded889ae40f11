"""Files that name the module `marked` of tests/user_modules, which leaves a mark when imported."""

import os
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

import gymnasium as gym

from tests.helpers.sealed import editing

USER_MODULES = Path(__file__).parent.parent / "user_modules"
REFUSED = "names the module marked: give --trust marked (or trust=['marked'] in Python)"


@contextmanager
def findable_marked(folder, monkeypatch):
    """Put `marked` on the search path, here and in child processes; yield the path of its mark."""
    mark = Path(folder) / "mark"
    monkeypatch.setenv("MARK", str(mark))
    paths = [str(USER_MODULES), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    monkeypatch.syspath_prepend(USER_MODULES)
    forget_marked()
    try:
        yield mark
    finally:
        forget_marked()


def forget_marked():
    sys.modules.pop("marked", None)
    gym.registry.pop("Marked-v0", None)


def changed_run(run, out, **changes):
    """Copy a run and change the environment or the settings in its run.json."""
    shutil.copytree(run, out)
    with editing(out / "run.json") as content:
        content["env"] = changes.pop("env", content["env"])
        content["settings"] |= changes
    return out

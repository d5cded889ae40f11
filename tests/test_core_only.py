"""What works after `pip install quantail`, and what the rest says that it needs."""

import ast
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import quantail
from quantail.cli.main import COMMANDS
from quantail.errors import QuantailError
from quantail.extras import EXTRAS, require_extra
from tests.helpers.core_only import PROJECT, CoreOnly
from tests.helpers.runs import QUICK, flags

CORE = [
    *("torch", "numpy", "gymnasium", "cloudpickle", "safetensors", "rich", "zstandard", "filelock"),
    "psutil",
]
OPTIONAL = PROJECT["optional-dependencies"]
MODULES = {module.partition(".")[0] for extra in EXTRAS.values() for module in extra.packages.values()}
WINDOWS_LACKS = {"fcntl", "resource", "grp", "pwd", "termios"}
PACKAGE = Path(quantail.__file__).parent
# What cannot be imported without its extra: the web server, and the loops that numba compiles.
NEEDS_EXTRA = ("quantail.viewing.live.server", "quantail.networks.kernels.")

IMPORT_EVERYTHING = f"""
import importlib, pkgutil, sys
import quantail
names = [one.name for one in pkgutil.walk_packages(quantail.__path__, "quantail.")]
for name in names:
    if name != "quantail.__main__" and not name.startswith({NEEDS_EXTRA}):
        importlib.import_module(name)
print(len(names))
"""

# The words of a command, and the sentence that it answers with.
REFUSED = {
    ("report", "run"): "a report needs matplotlib: pip install 'quantail[plots]'.",
    (
        "calibrate",
        "run",
    ): "the figure of quantail calibrate needs matplotlib: pip install 'quantail[plots]'.",
    ("compare", "run", "--out", "curves"): "a figure needs matplotlib: pip install 'quantail[plots]'.",
    ("study", "samples", "--small"): (
        "the figure of a study needs matplotlib: pip install 'quantail[plots]'."
    ),
    ("video", "run", "--out", "a.mp4"): "a video needs imageio-ffmpeg: pip install 'quantail[video]'.",
    ("watch", "run"): "quantail watch needs fastapi: pip install 'quantail[web]'.",
    ("play", "CartPole-v1", "--record", "a.jsonl"): (
        "quantail play needs pygame: pip install 'quantail[play]'."
    ),
    ("scores", "two-seeds.csv"): "an interval over seeds needs rliable: pip install 'quantail[stats]'.",
    ("train", "MinAtar/Breakout-v1", "--out", "a"): (
        "MinAtar/Breakout-v1 needs MinAtar: pip install 'quantail[minatar]'."
    ),
    ("train", "ALE/Pong-v5", "--out", "a"): "ALE/Pong-v5 needs ale-py: pip install 'quantail[atari]'.",
    ("train", "CartPole-v1", "--out", "a", "--tensorboard", "--quiet"): (
        "the setting tensorboard needs tensorboard: pip install 'quantail[tensorboard]'."
    ),
    ("train", "CartPole-v1", "--out", "b", "--wandb", "project", "--quiet"): (
        "the setting wandb needs wandb: pip install 'quantail[wandb]'."
    ),
    ("train", "CartPole-v1", "--out", "a", "--engine", "ray", "--quiet"): (
        "engine ray needs ray: pip install 'quantail[ray]'."
    ),
}


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    return CoreOnly(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def trained(core):
    """The environment with a tiny run in it, and the answers of the commands that it ran."""
    words = flags(QUICK["CartPole-v1"] | {"steps": 120})
    commands = [
        ("train", "CartPole-v1", "--out", "run", "--quiet", *words),
        ("eval", "run", "--episodes", 2),
        *((name,) for name in ("agents", "risks", "presets", "doctor")),
    ]
    return core, dict(zip([one[0] for one in commands], core.run_commands(*commands), strict=True))


def test_the_core_is_small():
    assert sorted(Requirement(text).name for text in PROJECT["dependencies"]) == sorted(CORE)


def test_every_module_but_the_web_server_can_be_imported(core):
    assert int(core.run_code(IMPORT_EVERYTHING)) > 150


def test_every_command_explains_itself(core):
    answers = core.run_commands(["--help"], *([name, "--help"] for name in COMMANDS))
    for name, (status, said, complaint) in zip(["quantail", *COMMANDS], answers, strict=True):
        assert status == 0, (name, complaint)
        assert "usage: quantail" in said


@pytest.mark.parametrize("name", ["train", "eval", "agents", "risks", "presets", "doctor"])
def test_the_core_trains_evaluates_and_lists(trained, name):
    status, _, complaint = trained[1][name]
    assert status == 0, complaint


def test_doctor_lists_every_absent_extra(trained):
    said = " ".join(trained[1]["doctor"][1].split())
    for name, extra in EXTRAS.items():
        assert f"absent {name} ({extra.purpose}) needs " in said
        assert f"pip install 'quantail[{name}]'." in said


@pytest.fixture(scope="module")
def refusals(trained):
    core = trained[0]
    (core.folder / "two-seeds.csv").write_text("game,score,seed\nPong,10,0\nPong,11,1\n")
    return dict(zip(REFUSED, core.run_commands(*REFUSED), strict=True))


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_a_command_without_its_extra_says_in_one_sentence_how_to_get_it(refusals, words):
    status, _, complaint = refusals[words]
    assert status == 2
    assert complaint == f"quantail: {REFUSED[words]}\n"


def test_a_package_that_is_installed_but_broken_says_why(tmp_path, monkeypatch):
    (tmp_path / "pygame.py").write_text("import its_other_half")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pygame", raising=False)
    with pytest.raises(QuantailError, match=r"\[play\]' \(No module named 'its_other_half'\)\.$"):
        require_extra("play", "a game")


def test_each_extra_of_pyproject_brings_the_packages_that_are_asked_for():
    assert {*EXTRAS, "all", "dev", "docs"} == set(OPTIONAL)
    for name, extra in EXTRAS.items():
        brought = {canonicalize_name(Requirement(text).name) for text in OPTIONAL[name]}
        assert {canonicalize_name(package) for package in extra.packages} <= brought
    (everything,) = map(Requirement, OPTIONAL["all"])
    assert everything.extras == set(EXTRAS)


def unguarded_imports(path):
    """Yield the modules that are imported when this one is: not those in functions or in a `try`."""
    waiting = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.ClassDef | ast.With):
            waiting += node.body


def test_no_module_imports_what_windows_or_the_core_lacks():
    server = PACKAGE / "viewing/live/server.py"
    assert "fastapi" in set(unguarded_imports(server))
    kernels = set((PACKAGE / "networks/kernels").glob("*.py")) - {
        PACKAGE / "networks/kernels/__init__.py"
    }
    for path in PACKAGE.rglob("*.py"):
        absent = WINDOWS_LACKS if path in kernels | {server} else WINDOWS_LACKS | MODULES
        assert not absent & set(unguarded_imports(path)), path

"""Files in the working folder never shadow installed modules."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers.crowded import crowded, unmarked
from tests.helpers.runs import QUICK, flags, quantail
from tests.helpers.studies import study_file

CONSOLE = "from quantail.cli.main import main; main()"  # what the command `quantail` runs


@pytest.fixture
def folder(tmp_path):
    return crowded(tmp_path / "here")


@pytest.mark.parametrize(
    "words",
    [
        ["risks"],
        ["scores", "--published"],
        ["agents", "iqn", "dqn"],
        ["eval", "RUN", "--episodes", "1"],
        ["eval", "RUN", "--episodes", "1", "--trust", "own_env"],
        ["report", "RUN", "--out", "page"],
    ],
    ids=str,
)
def test_a_file_with_the_name_of_an_installed_module_changes_no_command(words, folder, cartpoles):
    run = shutil.copytree(cartpoles / "iqn-1", folder.parent / "run")  # which gets a result
    words = [run if word == "RUN" else word for word in words]
    ended = quantail(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True


SEARCHED = """
import json, os, sys
from quantail.cli.main import run
before, places = list(sys.path), []
for words in json.loads(sys.argv[1]):
    sys.path[:] = before
    run(words)
    places.append([at for at, path in enumerate(sys.path) if path in ("", os.getcwd())])
print(json.dumps([len(before), places]))
"""


def test_the_working_folder_is_searched_only_where_the_user_names_a_module(folder):
    elsewhere = [["worlds", "Chain", "--risk", "cvar:0.1"], ["scores", "--published"]]
    here = [["worlds", "Chain", "--risk", "own_env:none"], ["worlds", "Chain", "--risk=own_env:none"]]
    here += [["eval", "none", "--trust", "own_env"], ["eval", "none", "--trust=own_env"]]
    line = [sys.executable, "-P", "-c", SEARCHED, json.dumps(elsewhere + here)]
    ended = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=True)
    last, places = json.loads(ended.stdout.splitlines()[-1])
    assert places == [[]] * len(elsewhere) + [[last]] * len(here)  # after everything else
    assert unmarked(folder) is True


@pytest.mark.parametrize("how", [["-m", "quantail"], ["-P", "-c", CONSOLE]], ids=["module", "console"])
def test_a_module_in_the_working_folder_is_found_by_its_name(how, folder):
    words = ["train", "own_env:Own-v0", "--out", "run", "--quiet"]
    words += flags(QUICK["CartPole-v1"] | {"steps": 80})
    for command in (words, ["eval", "run", "--episodes", "1", "--trust", "own_env"]):
        line = [sys.executable, *how, *command]
        ended = subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True


def test_runs_of_a_study_search_the_working_folder_after_installed_modules(folder):
    file = study_file(folder, 'games = ["own_env:Own-v0"]\n---\n[grid]\nkappa = [1.0]')
    words = ("study", "grid", file, "--out", "out", "--steps", 100, "--quiet", "--trust", "own_env")
    ended = quantail(*words, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    file = study_file(folder, 'games = ["CartPole-v1"]\n---\n[grid]\nkappa = [1.0]')
    ended = quantail("study", "grid", file, "--out", "plain", "--steps", 100, "--quiet", cwd=folder)
    assert ended.returncode == 0, ended.stderr
    assert unmarked(folder) is True


def test_the_search_path_of_another_program_is_not_changed(tmp_path):
    (tmp_path / "program").mkdir()
    (tmp_path / "program/__init__.py").write_text("import quantail")
    (tmp_path / "program/__main__.py").write_text("import sys; print(sys.path[0])")
    for how in (["-m", "program"], ["-m", "program", "-m", "quantail"]):
        line = [sys.executable, *how]
        ended = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True)
        assert ended.stdout.strip() == os.path.realpath(tmp_path)

"""The files around the code: version, metadata, workflows, hooks."""

import re
import tomllib
from pathlib import Path

import yaml

import quantail

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]


def loaded(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def targets():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def test_the_version_has_one_source():
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "quantail.__version__"}
    assert re.fullmatch(r"\d+\.\d+\.\d+", quantail.__version__)
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## ([\d.]+)", changes, re.MULTILINE)[1] == quantail.__version__
    citation = loaded("CITATION.cff")
    assert citation.get("version", quantail.__version__) == quantail.__version__


def test_the_license_and_the_authors_are_the_same_everywhere():
    citation = loaded("CITATION.cff")
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    assert PROJECT["authors"][0]["name"] in loaded_site()["copyright"]


def loaded_site():
    """Return the plain entries of mkdocs.yml."""
    lines = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").splitlines()
    return yaml.safe_load("\n".join(line for line in lines if re.match(r"\w+: \S", line)))


def test_the_workflow_calls_targets_that_exist_and_tests_every_python_that_is_named():
    workflow = loaded(".github/workflows/ci.yml")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    called = " ".join(step["run"] for step in steps if step.get("run", "").startswith("make"))
    assert set(re.findall(r"\b[a-z]+\b", called)) - {"make"} == {
        *("lint", "types", "train", "unit", "docs", "wheel"),
    }
    assert {"lint", "types", "train", "unit", "docs", "wheel", "hooks"} <= targets()
    tested = {step["with"].get("python-version") for step in steps if "setup-python" in str(step)}
    tested |= set(workflow["jobs"]["tests-newer-python"]["strategy"]["matrix"]["python-version"])
    named = {one.rpartition(" ")[2] for one in PROJECT["classifiers"] if "Python :: 3." in one}
    assert named <= tested


def test_the_hooks_before_a_commit_use_the_tools_of_the_lock():
    hooks = [hook for repo in loaded(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
    assert len(hooks) == 3
    for hook in hooks:
        assert hook["language"] == "system"
        assert re.match(r"\.venv/bin/(ruff|mypy)\b", hook["entry"])


def test_the_lock_holds_every_package_that_the_project_names():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").lower().replace("_", "-")
    held = {line.partition("==")[0] for line in lock.splitlines() if "==" in line}
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *(one for extra in extras.values() for one in extra)]:
        name = re.match(r"[\w-]+", line)[0].lower().replace("_", "-")
        assert name in held | {"quantail"}, name

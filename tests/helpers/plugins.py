"""The example plug-in of tests/plugin, broken ones, and processes that have them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import quantail

SOURCE = Path(__file__).parent.parent / "plugin"
PACKAGE = "quantail_example_plugin"
SEVERAL = """
import contextlib, io, json, sys
from quantail.cli.main import run
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = run(words)
        except SystemExit as end:  # --help
            status = end.code
    answers.append((status, out.getvalue(), err.getvalue()))
print(json.dumps(answers))
"""


def install(folder):
    """Install the example plug-in below the folder, as pip does; return what to search for modules."""
    # A copy, because building leaves files beside the source.
    source = shutil.copytree(SOURCE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    words = ["install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    words += ["--disable-pip-version-check", "--target", folder / "site", source]
    subprocess.run([sys.executable, "-m", "pip", *map(str, words)], check=True)
    return folder / "site"


def importable(folder):
    """Copy the package alone, which can then be imported but has no entry point."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE / PACKAGE, folder / "plain" / PACKAGE, ignore=ignored)
    return folder / "plain"


def broken(folder, name, code):
    """Write an installed plug-in with this code: a module whose `register` is its entry point."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[quantail.plugins]\n{name} = {name}:register\n")
    (folder / f"{name}.py").write_text(code)


def searching(*folders):
    """Return the environment of a process that also searches these folders for modules.

    It has the same Quantail as this process.
    """
    here = Path(quantail.__file__).parent.parent
    paths = [*map(str, folders), str(here), os.environ.get("PYTHONPATH", "")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def python(code, *words, env, **options):
    """Run code in a new process and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", code, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=env,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def commands(*several, env, **options):
    """Run several commands in one new process; return the status, stdout and stderr of each."""
    words = json.dumps([[str(word) for word in words] for words in several])
    return [tuple(one) for one in json.loads(python(SEVERAL, words, env=env, **options))]


def refused(answer, says):
    """Check that a command failed with one sentence, and return it."""
    status, _, err = answer
    assert status == 2, err
    assert err.count("\n") == 1, err
    assert err.startswith("quantail: ")
    assert says in err
    return err


def contents(folder):
    """Return every file of a folder with its bytes."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}

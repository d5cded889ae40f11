"""Check the wheel as a user gets it: installed into an empty environment, without and with an extra.

    make wheel

Builds the wheel, installs it with the versions of requirements.lock outside of the repository, trains
CartPole and lists the agents with the core alone, checks that a report names the missing extra, and
writes the report once that extra is installed. Most of the time is for installing torch.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
# Packages of extras, by the names of their modules, that nothing in the core brings along.
ABSENT = (
    *("ale_py", "fastapi", "imageio_ffmpeg", "matplotlib", "minatar", "pandas", "PIL", "pygame"),
    *("ray", "rliable", "scipy", "tensorboard", "uvicorn", "wandb", "websockets"),
)
DEMO = (
    "import quantail, quantail.demo;"
    "print(quantail.load(quantail.demo.folder('cliff')).act(0, risk='cvar:0.1'))"
)
NEEDED = "quantail: a report needs matplotlib: pip install 'quantail[plots]'.\n"


def main() -> None:
    """Run the check; any failure ends it with an error."""
    with tempfile.TemporaryDirectory(prefix="quantail-wheel-") as name:
        folder = Path(name)
        wheel = timed("build the wheel", lambda: build(folder))
        environment = folder / "venv"
        timed("create an environment", lambda: venv.create(environment, with_pip=True))
        scripts = environment / ("Scripts" if os.name == "nt" else "bin")
        timed("install the core", lambda: install(scripts, str(wheel)))
        timed("use the core", lambda: use_core(scripts, folder))
        timed("install the extra plots", lambda: install(scripts, f"{wheel}[plots]"))
        timed("write a report", lambda: write_report(scripts, folder))


def timed(what, step):
    """Run one step, print how long it took, and return its result."""
    start = time.monotonic()
    result = step()
    print(f"{what}: {time.monotonic() - start:.0f} s", flush=True)
    return result


def build(folder: Path) -> Path:
    """Build the wheel from a copy of the sources, so that nothing is left in the repository."""
    source = folder / "source"
    shutil.copytree(ROOT / "quantail", source / "quantail", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "--quiet", "wheel", *options, source)
    (wheel,) = folder.glob("quantail-*.whl")
    return wheel


def install(scripts: Path, what: str) -> None:
    """Install the wheel in the versions of the lock."""
    run(scripts / "python", "-m", "pip", "--quiet", "install", "--constraint", LOCK, what)


def use_core(scripts: Path, folder: Path) -> None:
    """Train, evaluate and list the agents without any extra, and see a report name the one it needs."""
    search = f"import importlib.util as u; print(*filter(u.find_spec, {ABSENT}))"
    found = run(scripts / "python", "-c", search, cwd=folder).stdout.split()
    require(not found, f"the core brings {found}")
    quantail = scripts / "quantail"
    short = ("--steps", 600, "--learning-starts", 200, "--quiet", "--out", "run")
    run(quantail, "train", "CartPole-v1", *short, cwd=folder)
    run(quantail, "eval", "run", "--episodes", 2, cwd=folder)
    found = run(scripts / "python", "-c", DEMO, cwd=folder).stdout.strip()
    require(found == "1", f"the shipped agent of the cliff takes action {found} under CVaR(0.1)")
    require("rainbow" in run(quantail, "agents", cwd=folder).stdout, "quantail agents lacks rainbow")
    refused = run(quantail, "report", "run", cwd=folder, status=2).stderr
    require(refused == NEEDED, f"quantail report says {refused!r}, not {NEEDED!r}")


def write_report(scripts: Path, folder: Path) -> None:
    """Write the report that was refused before."""
    run(scripts / "quantail", "report", "run", cwd=folder)
    require((folder / "run/report/index.html").stat().st_size > 10_000, "the report is almost empty")


def run(*words, cwd: Path | None = None, status: int = 0) -> subprocess.CompletedProcess:
    """Run a program that must end with this status, and return what it printed."""
    words = [str(word) for word in words]
    # Without PYTHONPATH, which could name the repository.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    require(done.returncode == status, f"{' '.join(words)} ended with {done.returncode}: {done.stderr}")
    return done


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise SystemExit(f"check_wheel: {otherwise}")


if __name__ == "__main__":
    main()

"""Compare what two versions of the code learn, bit for bit.

    make bits BASE=<commit>                        the working tree beside a commit
    make bits AGENT=iqn PRESET=minatar ENV=MinAtar/Breakout-v1     the fingerprint of one triple
    make bits AGENT=iqn PRESET=minatar ENV=MinAtar/Breakout-v1 BASE=<commit>      that of a commit

The script trains a fixed list of short, seeded runs with both versions, through their own command
lines, in the present Python environment and on one thread. It then compares weights, optimizer state
and every table except timing.csv, and says what differs and from which step. A version is run from a
folder of its own (PYTHONPATH), so nothing is installed or checked out in place.

Bits are comparable only on the same machine with the same torch.
"""

import argparse
import csv
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)] * (str(ROOT) not in sys.path)  # as a script, its folder is there instead

from tools.children import dies_with_parent  # noqa: E402

CACHE = ROOT / "runs" / ".bits"  # what commits learned; a commit never changes

# Renames, old name to new. A flag is passed by the name that the version's own --help lists; tensors
# and columns of both sides are compared under their new names.
RENAMED_FLAGS: dict[str, str] = {
    "learn-start": "learning-starts",
    "update-every": "train-frequency",
    "target-every": "target-update-interval",
    "replay-capacity": "buffer-size",
    "tau": "tau-sampling",
    "envs": "num-envs",
    "replay": "sampler",
}
RENAMED_TENSORS: dict[str, str] = {  # prefixes of tensor names
    f"{owner}torso.{layer}.": f"{owner}torso.layers.{layer}."
    for owner in ("", "target.", "optimizer.")
    for layer in range(1, 8)
}
RENAMED_FILES: dict[str, str] = {"actor": "collector"}  # of a checkpoint, without .safetensors
RENAMED_COLUMNS: dict[str, str] = {}

COMMON = {
    "steps": 1_000,  # 400 updates on CartPole, 200 on MinAtar and Pong
    "seed": 7,
    "threads": 1,
    "learning-starts": 200,
    "target-update-interval": 250,
    "epsilon-steps": 400,
    "evaluation-every": 500,
    "evaluation-episodes": 3,
    "evaluation-steps": 0,
    "max-episode-steps": 300,
    "checkpoint-every": 500,
    "log-every": 20,
    "buffer-size": 900,  # less than a run's steps, so that the ring wraps
}
PACKAGES = ("torch", "numpy", "gymnasium", "ale-py", "MinAtar", "numba")  # that decide bits


class BitsError(Exception):
    """A version that cannot train, or does not exist. The message is one sentence."""


@dataclass(frozen=True)
class Run:
    """One short training run."""

    env: str
    agent: str
    preset: str = ""
    flags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [self.env.rpartition("/")[2], self.agent, self.preset, *self.flags]
        return "-".join(word.strip("-").replace(":", "") for word in words if word)


# What the runs on CartPole try besides their agents.
FLAGS = {
    "double-dqn": ("--num-envs", "3"),
    "prioritized-dueling-dqn": ("--stack", "2"),
    "c51": ("--risk", "cpw:0.71"),
    "qr-dqn": ("--risk", "wang:-0.75"),
    "rainbow": ("--risk", "cvar:0.25"),
    "iqn": ("--risk", "cvar:0.25"),
    "rainbow-iqn": ("--num-envs", "2"),
    "m-iqn": ("--risk", "pow:-2"),
    "fqf": ("--risk", "norm:3"),
    "hl-gauss": ("--sampler", "prioritized"),
}


def agents() -> dict[str, Any]:
    """The agents of the working tree by name."""
    sys.path.insert(0, str(ROOT))
    try:
        from quantail.recipes import AGENTS
    finally:
        sys.path.remove(str(ROOT))
    return AGENTS


LOCAL_EPSILON = [name for name, one in agents().items() if one.parts.get("noisy")]  # ε is theirs
RUNS = [
    *(Run("CartPole-v1", agent, flags=FLAGS.get(agent, ())) for agent in agents()),
    *(Run("MinAtar/Breakout-v1", agent) for agent in ("iqn", "rainbow", "m-iqn", "fqf")),
    Run("ALE/Pong-v5", "iqn"),
]


@dataclass(frozen=True)
class Version:
    """The code of one side."""

    label: str
    folder: Path
    cache: Path | None = None  # where its finished runs are kept, if it cannot change

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "quantail", *words]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}

    @cached_property
    def known_flags(self) -> str:
        """The text of `quantail train --help-all`, or of `--help` where that has all settings."""
        done = self._call("train", "--help-all", cwd=self.folder)
        done = done if done.returncode == 0 else self._call("train", "--help", cwd=self.folder)
        if done.returncode or "--agent" not in done.stdout:
            reason = _last_line(done.stderr) or "its `quantail train --help` lists no --agent"
            raise BitsError(f"{self.label} cannot train in this environment: {reason}")
        return done.stdout

    def train(self, run: Run, out: Path) -> str:
        """Train into the folder `out`; what went wrong, or nothing."""
        known = self.known_flags
        flags = [f"--{name}={value}" for name, value in COMMON.items()]
        if run.agent in LOCAL_EPSILON:
            flags = [flag for flag in flags if not flag.startswith("--epsilon-steps")]
        words = [
            *flags,
            *run.flags,
            "--agent",
            run.agent,
            *(["--preset", run.preset] * bool(run.preset)),
        ]
        done = self._call(
            "train", run.env, *(_as_known(word, known) for word in words), "--out", str(out), "--quiet"
        )
        return _last_line(done.stderr) or "no reason given" if done.returncode else ""

    def _call(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as empty:  # so that no folder shadows the version's code
            return subprocess.run(
                self.command(*words),
                env=self.environment,
                cwd=cwd or empty,
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=dies_with_parent(),
            )


def _last_line(text: str) -> str:
    """The last line that a command printed: its error, without a traceback."""
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _as_known(word: str, known: str) -> str:
    """A flag under the name that a version's help text lists."""
    name, equals, value = word.partition("=")
    pairs = [pair for pair in RENAMED_FLAGS.items() if name.removeprefix("--") in pair]
    if not word.startswith("--") or not pairs:
        return word
    spelling = next((one for one in pairs[0] if f"--{one} " in known), name.removeprefix("--"))
    return f"--{spelling}{equals}{value}"


# What a run learned


def tensors_of(run: Path) -> dict[str, np.ndarray]:
    """Every tensor of the last checkpoint, under its new name."""
    last = run / "checkpoints" / (run / "checkpoints" / "last").read_text().strip()
    found = {}
    for path in sorted(last.glob("*.safetensors")):
        for name, array in load_file(path).items():
            owner = RENAMED_FILES.get(path.stem, path.stem)
            found[f"{owner}/{_renamed(name, RENAMED_TENSORS)}"] = array
    return found


def _renamed(name: str, renames: dict[str, str]) -> str:
    for old, new in renames.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def tables_of(run: Path) -> dict[str, list[dict[str, str]]]:
    """The rows of every table except timing.csv, under the new column names."""
    found = {}
    for path in sorted(run.glob("*.csv")):
        if path.name == "timing.csv":
            continue
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found[path.name] = [{RENAMED_COLUMNS.get(k, k): v for k, v in row.items()} for row in rows]
    return found


def differences(base: Path, here: Path) -> Iterable[str]:
    """What differs between two runs, a line each."""
    old_tables, new_tables = tables_of(base), tables_of(here)
    for name in sorted(old_tables.keys() | new_tables.keys()):
        if name not in old_tables or name not in new_tables:
            yield f"{name} is only in {'this' if name in new_tables else 'the base'} version"
            continue
        yield from _table_differences(name, old_tables[name], new_tables[name])
    old, new = tensors_of(base), tensors_of(here)
    for name in sorted(old.keys() | new.keys()):
        if name not in old or name not in new:
            yield f"tensor {name} is only in {'this' if name in new else 'the base'} version"
        elif (old[name].shape, old[name].dtype) != (new[name].shape, new[name].dtype):
            yield f"tensor {name} was {_kind(old[name])} and is {_kind(new[name])}"
        elif old[name].tobytes() != new[name].tobytes():
            gap = np.abs(old[name].astype(np.float64) - new[name].astype(np.float64)).max()
            yield f"tensor {name} differs, by at most {gap:.3g}"


def _kind(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _table_differences(name: str, old: list[dict[str, str]], new: list[dict[str, str]]) -> Iterable[str]:
    columns = [set(rows[0]) if rows else set() for rows in (old, new)]
    for column in sorted(columns[0] ^ columns[1]):
        side = "this" if column in columns[1] else "the base"
        yield f"{name}: column {column} is only in {side} version"
    for before, after in zip(old, new, strict=False):
        changed = [c for c in before if c in after and before[c] != after[c]]
        if changed:
            shown = ", ".join(f"{c} {before[c]} -> {after[c]}" for c in changed[:3])
            yield f"{name} differs from step {before.get('steps', '?')} on: {shown}"
            return
    if len(old) != len(new):
        yield f"{name} has {len(new)} rows instead of {len(old)}"


@dataclass(frozen=True)
class Fingerprint:
    """What a version learns with one agent, preset and environment, and with which kernels."""

    digest: str
    kernels: str


def fingerprint_of(
    version: Version, agent: str, preset: str, env: str, kernels: str = ""
) -> Fingerprint:
    """Train one short run and return its fingerprint.

    With `kernels` "torch" the version does not use compiled kernels. Otherwise it decides; the answer
    says which compute path it used.
    """
    flags = ("--kernels", kernels) if kernels == "torch" and "--kernels" in version.known_flags else ()
    run = Run(env, agent, preset, flags)
    with tempfile.TemporaryDirectory() as scratch:
        out, problem = trained(version, run, Path(scratch))
        if problem:
            raise BitsError(
                f"{version.label} cannot train {agent} with preset {preset} on {env}: {problem}"
            )
        return Fingerprint(fingerprint(out), kernels_of(out))


def kernels_of(run: Path) -> str:
    """The compute path that a run used. Runs that do not name one used torch."""
    return str(json.loads((run / "run.json").read_text(encoding="utf-8")).get("kernels", "torch"))


def fingerprint(run: Path) -> str:
    """A digest of what a run learned; names of tensors and columns do not count."""
    digests = sorted(
        hashlib.sha256(f"{_kind(array)}".encode() + array.tobytes()).hexdigest()
        for array in tensors_of(run).values()
    )
    tables = tables_of(run)
    scores = [
        [row["steps"] for row in tables["episodes.csv"]],
        [row["return"] for row in tables["episodes.csv"]],
        [row["mean"] for row in tables["evaluations.csv"]],
    ]
    return hashlib.sha256(json.dumps([digests, scores]).encode()).hexdigest()[:16]


# The two sides


def sha_of(commit: str) -> str:
    """The full name of a commit."""
    asked = ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        raise BitsError(f"{commit!r} is not a commit of this repository.")
    return found.stdout.strip()


def checkout(commit: str) -> Version:
    """A commit's files, in a folder of their own."""
    sha = sha_of(commit)
    label = f"{commit} ({sha[:7]})" if commit != sha else f"commit {sha[:7]}"
    folder = CACHE / sha / "code"
    if not folder.exists():
        archive = subprocess.run(
            ["git", "archive", sha, "quantail"], cwd=ROOT, capture_output=True, check=False
        )
        if archive.returncode:
            raise BitsError(f"{label} cannot train: it has no folder quantail.")
        partial = folder.with_name(f"code.{os.getpid()}.part")
        partial.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(partial)], input=archive.stdout, check=True)
        if folder.exists():  # another process was faster
            shutil.rmtree(partial)
        else:
            partial.rename(folder)
    return Version(label, folder, CACHE / sha / _inputs())


def _inputs() -> str:
    """What a kept run depends on besides its commit: the list of runs, the machine, the packages."""
    from importlib.metadata import PackageNotFoundError, version

    def version_of(name: str) -> str:
        try:
            return version(name)
        except PackageNotFoundError:
            return ""

    text = repr((COMMON, RUNS, processor(), [version_of(name) for name in PACKAGES]))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def processor() -> str:
    """The model of the processor, and the instructions that torch uses on it."""
    import torch

    model = platform.processor() or platform.machine()
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = names[0] if names else model
    return f"{model}, {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


def trained(version: Version, run: Run, scratch: Path) -> tuple[Path, str]:
    """The folder of a finished run of this version, and what went wrong, if anything."""
    kept = version.cache / run.name if version.cache else None
    if kept and kept.exists():
        return kept, ""
    out = scratch / version.label.replace("/", "-").replace(" ", "-") / run.name
    out.parent.mkdir(parents=True, exist_ok=True)
    problem = version.train(run, out)
    if kept and not problem:
        shutil.rmtree(out / "replay", ignore_errors=True)
        return _keep(out, kept), ""
    return out, problem


def _keep(out: Path, kept: Path) -> Path:
    """Move a run into the cache; a process that is killed leaves no half of it there."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = kept.with_name(f"{kept.name}.{os.getpid()}.part")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.move(out, partial)
    try:
        partial.rename(kept)
    except OSError:  # another process was faster
        shutil.rmtree(partial, ignore_errors=True)
    return kept


def compare(commit: str, runs: list[Run], workers: int) -> int:
    """Print what differs between a commit and the working tree; 1 where anything does."""
    versions = [checkout(commit), Version("this", ROOT)]
    for version in versions:
        _ = version.known_flags  # so that a version that cannot train is noticed first
    differing = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        jobs = {
            run: [pool.submit(trained, version, run, Path(scratch)) for version in versions]
            for run in runs
        }
        for run, (base, here) in jobs.items():
            (old, failed_before), (new, failed) = base.result(), here.result()
            if failed_before or failed:
                found = [f"does not train in {versions[0].label}: {failed_before}"] * bool(failed_before)
                found += [f"does not train here: {failed}"] * bool(failed)
            else:
                found = list(differences(old, new))
            differing += bool(found)
            print(f"{'differs' if found else 'equal  '}  {run.name}", flush=True)
            for line in found[:8]:
                print(f"         {line}")
            if len(found) > 8:
                print(f"         and {len(found) - 8} more")
    print(f"{len(runs) - differing} of {len(runs)} runs are equal to {versions[0].label}, bit for bit.")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--base", metavar="COMMIT", help="compare the working tree with this commit")
    parser.add_argument("--only", metavar="TEXT", default="", help="only runs with this in their name")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="runs at a time [cores]")
    parser.add_argument(
        "--fingerprint", nargs=3, metavar=("AGENT", "PRESET", "ENV"), help="print one run's digest"
    )
    parser.add_argument(
        "--kernels", default="", help="compute path of the fingerprint [the version's own]"
    )
    parser.add_argument("--json", action="store_true", help="print the fingerprint as JSON")
    asked = parser.parse_args()
    runs = [run for run in RUNS if asked.only in run.name]
    if not asked.fingerprint and (not asked.base or not runs):
        parser.error("give --base COMMIT or --fingerprint, and a part of a run's name with --only.")
    try:
        if not asked.fingerprint:
            return compare(asked.base, runs, asked.workers or 1)
        version = checkout(asked.base) if asked.base else Version("this", ROOT)
        found = fingerprint_of(version, *asked.fingerprint, kernels=asked.kernels)
    except BitsError as error:
        raise SystemExit(f"bits: {error}") from None
    print(json.dumps(asdict(found)) if asked.json else f"{found.digest}  {' '.join(asked.fingerprint)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

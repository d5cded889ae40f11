"""Compare what two versions of the code learn, bit for bit.

    make bits BASE=<commit>                        the working tree beside a commit
    make bits AGENT=iqn PRESET=minatar ENV=MinAtar/Breakout-v1     the fingerprint of one triple

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
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).resolve().parent.parent
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

    def known_flags(self) -> str:
        """The text of `quantail train --help-all`, or of `--help` where that has all settings."""
        done = self._call("train", "--help-all", cwd=self.folder)
        done = done if done.returncode == 0 else self._call("train", "--help", cwd=self.folder)
        if done.returncode:
            raise SystemExit(f"bits: {self.label} does not start: {done.stderr.strip()}")
        return done.stdout

    def train(self, run: Run, out: Path, known: str) -> str:
        """Train into the folder `out`; what went wrong, or nothing."""
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
        return done.stderr.strip() if done.returncode else ""

    def _call(self, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as empty:  # so that no folder shadows the version's code
            return subprocess.run(
                self.command(*words),
                env=self.environment,
                cwd=cwd or empty,
                capture_output=True,
                text=True,
                check=False,
            )


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


def checkout(commit: str) -> Version:
    """A commit's files, in a folder of their own."""
    asked = ["git", "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}"]
    found = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        raise SystemExit(f"bits: {commit!r} is not a commit of this repository.")
    sha = found.stdout.strip()
    folder = CACHE / sha / "code"
    if not folder.exists():
        partial = folder.with_name(f"code.{os.getpid()}.part")
        partial.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", sha, "quantail"], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", str(partial)], input=archive.stdout, check=True)
        partial.rename(folder)
    return Version(f"{commit} ({sha[:7]})", folder, CACHE / sha / _inputs())


def _inputs() -> str:
    """What a kept run depends on besides its commit: the list of runs and the packages."""
    from importlib.metadata import version

    text = repr((COMMON, RUNS, [version(name) for name in ("torch", "numpy", "gymnasium", "ale-py")]))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def trained(version: Version, run: Run, scratch: Path, known: str) -> tuple[Path, str]:
    """The folder of a finished run of this version, and what went wrong, if anything."""
    kept = version.cache / run.name if version.cache else None
    if kept and kept.exists():
        return kept, ""
    out = scratch / version.label.split()[0].replace("/", "-") / run.name
    out.parent.mkdir(parents=True, exist_ok=True)
    problem = version.train(run, out, known)
    if kept and not problem:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(out / "replay", ignore_errors=True)
        shutil.move(out, kept)
        out = kept
    return out, problem


def compare(commit: str, runs: list[Run], workers: int) -> int:
    """Print what differs between a commit and the working tree; 1 where anything does."""
    versions = [checkout(commit), Version("this", ROOT)]
    known = [version.known_flags() for version in versions]
    differing = 0
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(workers) as pool:
        jobs = {
            run: [
                pool.submit(trained, version, run, Path(scratch), flags)
                for version, flags in zip(versions, known, strict=True)
            ]
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
    asked = parser.parse_args()
    if asked.fingerprint:
        agent, preset, env = asked.fingerprint
        here = Version("this", ROOT)
        run = Run(env, agent, preset)
        with tempfile.TemporaryDirectory() as scratch:
            out, problem = trained(here, run, Path(scratch), here.known_flags())
            if problem:
                raise SystemExit(f"bits: {problem}")
            print(f"{fingerprint(out)}  {agent} {preset} {env}")
        return 0
    runs = [run for run in RUNS if asked.only in run.name]
    if not asked.base or not runs:
        parser.error("give --base COMMIT or --fingerprint, and a part of a run's name with --only.")
    return compare(asked.base, runs, asked.workers or 1)


if __name__ == "__main__":
    sys.exit(main())

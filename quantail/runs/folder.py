"""The folder of a run on disk, and its description in run.json."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from quantail import validation
from quantail.config import Config, is_setting
from quantail.envs.source import FUNCTION
from quantail.errors import QuantailError, damage
from quantail.evaluation.protocols import Protocol
from quantail.files import hold, link_error, read_sealed, write_sealed, write_text
from quantail.runs.checkpoints import AGENT, Checkpoints
from quantail.runs.tables import TABLES
from quantail.spaces import ActionSpec, ObservationSpec
from quantail.stateful import State

SCHEMA = 2  # 1 had a single array in place of the entries of an observation
LOCK = ".lock"
SAVED = ".saved"
LOGGERS = ("tensorboard", "wandb")  # folders of other loggers
PACKAGES = ("quantail", "torch", "numpy", "gymnasium", "ale-py", "MinAtar", "safetensors", "numba")


@dataclass(frozen=True)
class RunInfo:
    """The content of `run.json` that is needed to load, evaluate and resume a run."""

    env: str
    config: Config
    observation: ObservationSpec
    actions: ActionSpec
    protocol: Protocol  # of evaluations in training
    threads: int
    kernels: str  # the compute path: "numba" for compiled kernels, or "torch"

    def to_dict(self) -> dict[str, Any]:
        """Return the description as run.json holds it."""
        return {
            "env": self.env,
            "agent": self.config.run.agent,
            "settings": self.config.to_dict(),
            "protocol": self.protocol.to_dict(),
            "observation": self.observation.to_dict(),
            "actions": asdict(self.actions),
            "threads": self.threads,
            "kernels": self.kernels,
        }

    @property
    def num_masked(self) -> int:
        """The number of actions in a mask; 0 if the environment has no masks."""
        return self.actions.count if self.actions.masked else 0

    @property
    def preset(self) -> str:
        """The preset that the configuration is made from."""
        return self.config.run.preset

    @property
    def frames_per_step(self) -> int:
        """The number of frames of the emulator that a step takes; 1 where there is no emulator."""
        return self.protocol.action_repeat


class RunFolder:
    """The paths of a run's files, and the lock on its folder."""

    def __init__(self, path: Path | str) -> None:
        self.path = validation.path("the folder of a run", path)
        self.checkpoints = self.path / "checkpoints"
        self.replay = self.path / "replay"
        self.results = self.path / "results"
        self.report = self.path / "report"

    def mark_saved(self) -> None:
        """Remember, outside checkpoints/, that the run has saved: the folder alone may get lost."""
        if not self.has_saved():
            write_text(self.path / SAVED, "")

    def has_saved(self) -> bool:
        """Return whether the run has ever written a checkpoint."""
        return (self.path / SAVED).exists()

    def table(self, name: str) -> Path:
        return self.path / f"{name}.csv"

    def require_new(self) -> None:
        """Raise an error unless the folder is new, or only holds what a run killed at its start left."""
        if not self.path.exists() or self._is_unstarted():
            return
        if (self.path / "run.json").exists():
            raise QuantailError(
                f"{self.path} exists already: continue with `quantail resume {self.path}`, "
                "or choose another folder with --out."
            )
        raise QuantailError(
            f"{self.path} exists already and is not a run: choose another folder with --out."
        )

    def _is_unstarted(self) -> bool:
        """Return whether the folder holds nothing but what `created` makes before it writes run.json."""
        if not self.path.is_dir():
            return False
        for path in self.path.iterdir():
            is_plain = path.is_file() and not path.is_symlink()
            if path == self.checkpoints:
                if path.is_symlink() or not path.is_dir() or any(path.iterdir()):
                    return False
            elif path.name not in (LOCK, ".run.json.part") or not is_plain:
                return False
        return True

    @contextmanager
    def created(self, info: RunInfo) -> Iterator[None]:
        """Create the folder and write run.json; undo both if the body of the `with` statement fails."""
        self.require_new()
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise QuantailError(f"{self.path} cannot be created: {error.strerror}.") from error
        with self.held():
            self.require_new()  # another process may have started a run here in the meantime
            try:
                self.checkpoints.mkdir(exist_ok=True)
                self._describe(info)
                yield
            except BaseException:
                with suppress(OSError):
                    self._undo(is_new)
                raise

    def _undo(self, is_new: bool) -> None:
        """Remove the files that a run wrote before it failed to start, and nothing else.

        `is_new` says that the folder itself did not exist before.
        """
        for name in ("run.json", ".run.json.part", *(f"{table}.csv" for table in TABLES)):
            (self.path / name).unlink(missing_ok=True)
        for name in LOGGERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        with suppress(OSError):
            self.checkpoints.rmdir()
        (self.path / LOCK).unlink()
        if is_new:
            self.path.rmdir()  # fails, and so does nothing, if there is anything else in it

    def _describe(self, info: RunInfo) -> None:
        write_sealed(
            self.path / "run.json",
            {
                "schema": SCHEMA,
                **info.to_dict(),
                **_origin(),
                "command": " ".join(sys.argv),
                "machine": {
                    "system": platform.platform(),
                    "processor": _processor(),
                    "cores": os.cpu_count(),
                },
            },
        )

    def save_agent(self, info: RunInfo, steps: int, weights: State) -> None:
        """Write a new folder that holds an agent alone: run.json and one checkpoint with its weights."""
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise QuantailError(f"{self.path} exists already: choose another folder for the agent.")
        try:
            self.checkpoints.mkdir(parents=True)
        except OSError as error:
            raise QuantailError(f"{self.path} cannot be created: {error.strerror}.") from error
        Checkpoints(self.checkpoints).save(steps, {AGENT: weights})
        write_sealed(self.path / "run.json", {"schema": SCHEMA, **info.to_dict(), **_origin()})

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against other training processes; the lock ends with the process."""
        with hold(self.path / LOCK, f"{self.path} is being trained"):
            yield

    def read(self) -> RunInfo:
        """Return the description of the run; raise an error that says why it cannot be read."""
        path, content = self.path / "run.json", self.about()
        try:
            return RunInfo(
                env=content["env"],
                config=_config(path, content["settings"]),
                observation=ObservationSpec.from_dict(content["observation"]),
                actions=ActionSpec.from_dict(content["actions"]),
                protocol=_protocol(path, content["protocol"]),
                threads=content["threads"],
                kernels=content["kernels"],
            )
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise QuantailError(f"{path} is damaged: {damage(error)}.") from error

    def about(self) -> dict[str, Any]:
        """Return the content of run.json after verifying its checksum."""
        if not self.path.exists():
            raise QuantailError(f"there is no run at {self.path}.")
        if not (self.path / "run.json").exists():
            advice = " Start it with quantail train." if self._is_unstarted() else ""
            raise QuantailError(f"{self.path} is not a run: it has no run.json.{advice}")
        return read_sealed(self.path / "run.json", SCHEMA)

    def require_no_links(self) -> None:
        """Raise an error if a path that training writes or removes is a symbolic link."""
        tables = [self.table(name) for name in TABLES]
        for path in (self.checkpoints, self.replay, self.path / LOCK, *tables):
            if path.is_symlink():
                raise link_error(path)

    def clear_tables(self) -> None:
        """Remove the tables of a session that never saved."""
        self.checkpoints.mkdir(exist_ok=True)
        for name in TABLES:
            self.table(name).unlink(missing_ok=True)

    def record(self, *, steps: int, threads: int, kernels: str) -> None:
        """Record the length, the number of threads and the compute path with which the run continues."""
        content = self.about()
        content["settings"]["steps"] = steps
        content |= {"threads": threads, "kernels": kernels}
        write_sealed(self.path / "run.json", content)


def _config(path: Path, settings: dict[str, Any]) -> Config:
    """Return the configuration of run.json; raise an error for unknown or missing names.

    Ignoring them would silently change the run.
    """
    if unknown := [name for name in settings if not is_setting(name)]:
        raise QuantailError(
            f"{path} holds settings that this version of Quantail does not know "
            f"({', '.join(unknown)}): use the version that made the run."
        )
    try:
        config = Config.from_dict(settings)
    except QuantailError as error:
        raise QuantailError(f"{path} is damaged: {error}") from error
    if missing := [name for name in config.to_dict() if name not in settings]:
        raise QuantailError(
            f"{path} lacks settings that this version of Quantail needs "
            f"({', '.join(missing)}): use the version that made the run."
        )
    return config


def _protocol(path: Path, protocol: Any) -> Protocol:
    try:
        return Protocol.from_dict(protocol)
    except QuantailError as error:
        raise QuantailError(f"{path} is damaged: {error}") from error


def default_folder(env: str, agent: str, seed: int) -> Path:
    """Return a folder below `runs/` that does not exist yet."""
    plain = re.sub(r"-v\d+$", "", env.rpartition(":")[2].removeprefix(FUNCTION))
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    base = Path("runs") / f"{slug}-{agent}-s{seed}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def _origin() -> dict[str, Any]:
    """Return when a file was written, and by which versions."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()} | _versions(),
    }


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # packages of extras may be missing
            found[name] = version(name)
    return found


def _processor() -> str:
    capability: str = torch.backends.cpu.get_cpu_capability()
    return f"{platform.machine()} {capability}"

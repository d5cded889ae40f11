"""A run on disk: what is where, and what it says of itself."""

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from quantail.envs.make import FUNCTION
from quantail.errors import QuantailError, damage
from quantail.evaluation.protocols import own_protocol
from quantail.files import check_seal, hold, linked, read_json, write_sealed
from quantail.observations import ActionSpec, ObservationSpec
from quantail.settings import DEFAULTS, Settings
from quantail.training.tables import TABLES

SCHEMA = 1
LOCK = ".lock"
SINKS = ("tensorboard", "wandb")  # folders of other programs that log a run
PACKAGES = ("quantail", "torch", "numpy", "gymnasium", "ale-py", "MinAtar", "safetensors")


@dataclass(frozen=True)
class RunInfo:
    """What `run.json` holds: enough to load, evaluate and resume a run."""

    env: str
    preset: str
    settings: Settings
    observation: ObservationSpec
    actions: ActionSpec
    threads: int


class RunFolder:
    """The files of one run, below one folder."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.replay = self.path / "replay"
        self.results = self.path / "results"
        self.report = self.path / "report"

    def table(self, name: str) -> Path:
        return self.path / f"{name}.csv"

    def require_new(self) -> None:
        """Refuse a folder that holds anything but what a run leaves that is killed before it begins."""
        if not self.path.exists() or self._is_unborn():
            return
        if (self.path / "run.json").exists():
            raise QuantailError(
                f"{self.path} exists already: go on with `quantail resume {self.path}`, "
                "or name another folder with --out."
            )
        raise QuantailError(
            f"{self.path} exists already and is not a run: name another folder with --out."
        )

    def _is_unborn(self) -> bool:
        """Whether the folder holds nothing but what `created` makes before run.json is there."""
        if not self.path.is_dir():
            return False
        for one in self.path.iterdir():
            plain = one.is_file() and not one.is_symlink()
            if one == self.checkpoints:
                if one.is_symlink() or not one.is_dir() or any(one.iterdir()):
                    return False
            elif one.name not in (LOCK, ".run.json.part") or not plain:
                return False
        return True

    @contextmanager
    def created(self, info: RunInfo) -> Iterator[None]:
        """Make the folder and say in it what the run is; undo that if the body of the `with` fails."""
        self.require_new()
        made = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise QuantailError(f"{self.path} cannot be made: {error.strerror}.") from error
        with self.held():
            self.require_new()  # another process may have begun here in the meantime
            try:
                self.checkpoints.mkdir(exist_ok=True)
                self._describe(info)
                yield
            except BaseException:
                with suppress(OSError):
                    self._undo(made)
                raise

    def _undo(self, made: bool) -> None:
        """Remove what a run that did not begin has written, and nothing else.

        `made` says that the folder itself was not there before.
        """
        for name in ("run.json", ".run.json.part", *(f"{table}.csv" for table in TABLES)):
            (self.path / name).unlink(missing_ok=True)
        for name in SINKS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        with suppress(OSError):
            self.checkpoints.rmdir()
        (self.path / LOCK).unlink()
        if made:
            self.path.rmdir()  # fails, and so does nothing, where there is anything else in it

    def _describe(self, info: RunInfo) -> None:
        write_sealed(
            self.path / "run.json",
            {
                "schema": SCHEMA,
                "env": info.env,
                "agent": info.settings.agent,
                "preset": info.preset,
                "settings": info.settings.to_dict(),
                "protocol": own_protocol(info.settings).to_dict(),
                "observation": info.observation.to_dict(),
                "actions": asdict(info.actions),
                "threads": info.threads,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "command": " ".join(sys.argv),
                "versions": {"python": platform.python_version()} | _versions(),
                "machine": {
                    "system": platform.platform(),
                    "processor": _processor(),
                    "cores": os.cpu_count(),
                },
            },
        )

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from training in this folder; a killed one lets go of it."""
        with hold(self.path / LOCK, f"{self.path} is being trained"):
            yield

    def read(self) -> RunInfo:
        """What the run says of itself, or why it cannot be read."""
        path, content = self.path / "run.json", self.about()
        try:
            return RunInfo(
                env=content["env"],
                preset=content["preset"],
                settings=_settings(path, content["settings"]),
                observation=ObservationSpec.from_dict(content["observation"]),
                actions=ActionSpec(**content["actions"]),
                threads=content["threads"],
            )
        except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
            raise QuantailError(f"{path} is damaged: {damage(error)}.") from error

    def about(self) -> dict[str, Any]:
        """Return the content of run.json after checking that it is whole."""
        if not self.path.exists():
            raise QuantailError(f"there is no run at {self.path}.")
        if not (self.path / "run.json").exists():
            begin = " Begin it with quantail train." if self._is_unborn() else ""
            raise QuantailError(f"{self.path} is not a run: it has no run.json.{begin}")
        return read_sealed(self.path / "run.json", SCHEMA)

    def require_plain(self) -> None:
        """Refuse symbolic links where training writes and removes files."""
        tables = [self.table(name) for name in TABLES]
        for path in (self.checkpoints, self.replay, self.path / LOCK, *tables):
            if path.is_symlink():
                raise linked(path)

    def clear_tables(self) -> None:
        """Remove the tables of a session that never saved."""
        self.checkpoints.mkdir(exist_ok=True)
        for name in TABLES:
            self.table(name).unlink(missing_ok=True)

    def extend(self, steps: int) -> None:
        """Change the length of the run."""
        content = self.about()
        content["settings"]["steps"] = steps
        write_sealed(self.path / "run.json", content)


def check_schema(path: Path, content: dict[str, Any], newest: int) -> None:
    """Refuse a file of a version that this one does not know."""
    schema = content.get("schema")
    if not isinstance(schema, int):
        raise QuantailError(f"{path} is damaged: it names no schema version.")
    if schema > newest:
        raise QuantailError(
            f"{path} was made by a newer Quantail (schema {schema}; this one reads up to {newest}): "
            "update Quantail to use it."
        )


def read_sealed(path: Path, newest: int) -> dict[str, Any]:
    """Read a JSON file with a checksum, after checking its schema version and its content."""
    content = read_json(path)
    check_schema(path, content, newest)
    return check_seal(path, content)


def _settings(path: Path, settings: dict[str, Any]) -> Settings:
    """Return the settings of run.json; a name too many or too few would silently make another run."""
    if unknown := [name for name in settings if name not in DEFAULTS]:
        raise QuantailError(
            f"{path} holds settings that this version of Quantail does not know "
            f"({', '.join(unknown)}): use the version that made the run."
        )
    if missing := [name for name in DEFAULTS if name not in settings]:
        raise QuantailError(
            f"{path} lacks settings that this version of Quantail needs "
            f"({', '.join(missing)}): use the version that made the run."
        )
    try:
        return Settings().with_changes(settings)
    except QuantailError as error:
        raise QuantailError(f"{path} is damaged: {error}") from error


def default_folder(env: str, agent: str, seed: int) -> Path:
    """A free name below `runs/`."""
    plain = re.sub(r"-v\d+$", "", env.rpartition(":")[2].removeprefix(FUNCTION))
    slug = re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")
    base = Path("runs") / f"{slug}-{agent}-s{seed}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def _versions() -> dict[str, str]:
    return {name: version(name) for name in PACKAGES}


def _processor() -> str:
    capability: str = torch.backends.cpu.get_cpu_capability()
    return f"{platform.machine()} {capability}"

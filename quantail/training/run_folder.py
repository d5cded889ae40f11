"""A run on disk: what is where, and what it says of itself."""

import os
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from quantail.envs.make import FUNCTION
from quantail.errors import QuantailError, damage
from quantail.evaluation.protocols import own_protocol
from quantail.files import check_seal, hold, read_json, write_sealed
from quantail.observations import ActionSpec, ObservationSpec
from quantail.settings import DEFAULTS, Settings

SCHEMA = 1
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
        """Refuse a folder that exists already."""
        if self.path.exists():
            raise QuantailError(
                f"{self.path} exists already: go on with `quantail resume {self.path}`, "
                "or name another folder with --out."
            )

    def create(self, info: RunInfo) -> None:
        """Make the folder and say in it what the run is."""
        self.require_new()
        try:
            self.path.mkdir(parents=True)
        except OSError as error:
            raise QuantailError(f"{self.path} cannot be made: {error.strerror}.") from error
        self.checkpoints.mkdir()
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
        with hold(self.path / ".lock", f"{self.path} is being trained"):
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
            raise QuantailError(f"{self.path} is not a run: it has no run.json.")
        return read_sealed(self.path / "run.json", SCHEMA)

    def clear_tables(self) -> None:
        """Forget what a session wrote that never saved."""
        self.checkpoints.mkdir(exist_ok=True)
        for path in self.path.glob("*.csv"):
            path.unlink()

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

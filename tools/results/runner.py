"""One run: train it or resume it, evaluate its last weights, and describe it as rows of the tables."""

import json
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from quantail.files import write_text
from tools.bits import BitsError, Fingerprint, kernels_of, processor
from tools.children import Children
from tools.results.plan import Spec, Study, settings_text
from tools.results.protocol import protocol_text
from tools.results.site import Site, environment
from tools.results.table import RunRow
from tools.results.training import curve, is_over, last_checkpoint, seconds_so_far, wait_for


class FailedError(Exception):
    """A run that ended with an error. The message is one sentence."""


@dataclass(frozen=True)
class Runner:
    """Runs the planned runs of a site, at the commit of its worktree."""

    site: Site
    commit: str
    python: str  # interpreter
    children: Children

    def run(self, study: Study, spec: Spec) -> RunRow:
        """Do one run and record it; what it leaves on disk is removed when its row is written."""
        folder = self.site.run(spec.id)
        print(f"{spec.label}: {study.name}, {spec.steps:,} steps", flush=True)
        try:
            fingerprint = self.fingerprint(spec)
        except BitsError as error:
            raise FailedError(str(error)) from error
        self._train(study, spec, folder)
        started = time.monotonic()
        score = self._evaluate(spec, folder)
        row = self._row(study, spec, folder, score, fingerprint, time.monotonic() - started)
        self.site.tables.record(row, curve(spec, folder, row.trained))
        self.forget(spec.id)
        self.site.log(spec.id).unlink(missing_ok=True)
        print(f"{spec.label}: {row.mean:.2f} after {row.seconds / 60:.1f} minutes", flush=True)
        return row

    def forget(self, identifier: str) -> None:
        """Remove the folder of a run that the queue made."""
        shutil.rmtree(self.site.run(identifier), ignore_errors=True)
        self.site.commit_file(identifier).unlink(missing_ok=True)

    def fingerprint(self, spec: Spec, commit: str = "", kernels: str = "") -> Fingerprint:
        """Return the fingerprint of the run's agent, preset and game, by default at this commit."""
        words = ["--fingerprint", spec.agent, spec.preset, spec.env, "--base", commit or self.commit]
        words += ["--kernels", kernels] * bool(kernels)
        code, text = self._call("tools.bits", *words, "--json", log="fingerprints")
        if code:
            raise BitsError(self._reason(f"{spec.label} has no fingerprint", "fingerprints"))
        return Fingerprint(**json.loads(text))

    def _train(self, study: Study, spec: Spec, folder: Path) -> None:
        """Train a run to its end. One that was interrupted at this very commit goes on."""
        wait_for(folder)
        started = self.site.commit_file(spec.id)
        same = started.exists() and started.read_text(encoding="utf-8") == self.commit
        if same and (folder / "run.json").exists():
            if is_over(study, spec, folder) or self._call_within(study, spec, "resume", folder):
                return
            print(f"{spec.label}: it cannot be resumed and begins again", flush=True)
        self.forget(spec.id)
        self.site.runs.mkdir(parents=True, exist_ok=True)
        write_text(started, self.commit)
        words = ["--agent", spec.agent, "--preset", spec.preset, "--seed", spec.seed]
        words += ["--steps", spec.steps, "--threads", study.threads, *spec.flags]
        if not self._call_within(study, spec, "train", spec.env, *words, "--out", folder):
            self.forget(spec.id)
            raise FailedError(self._reason(f"{spec.label} failed", spec.id))

    def _call_within(self, study: Study, spec: Spec, command: str, *words: object) -> bool:
        """Train or resume within the time of the study; return whether the run is over."""
        folder = self.site.run(spec.id)
        left = study.hours * 3600 - seconds_so_far(folder) if study.hours else None
        begin = time.monotonic()
        self._call("quantail", command, *words, "--quiet", log=spec.id, seconds=left)
        timed_out = left is not None and time.monotonic() - begin >= left
        return is_over(study, spec, folder) or (timed_out and last_checkpoint(folder) is not None)

    def _evaluate(self, spec: Spec, folder: Path) -> dict[str, Any]:
        words = ["--checkpoint", "last", "--episodes", spec.episodes, "--seed", spec.evaluation_seed]
        code, text = self._call("quantail", "eval", folder, *words, "--json", log=spec.id)
        if code:
            raise FailedError(self._reason(f"{spec.label} cannot be evaluated", spec.id))
        score: dict[str, Any] = json.loads(text)
        return score

    def _row(
        self,
        study: Study,
        spec: Spec,
        folder: Path,
        score: dict[str, Any],
        fingerprint: Fingerprint,
        evaluation: float,
    ) -> RunRow:
        kernels = kernels_of(folder)
        if kernels != fingerprint.kernels:
            fingerprint = self.fingerprint(spec, kernels=kernels)
        return RunRow(
            id=spec.id,
            study=study.name,
            game=spec.env,
            agent=spec.agent,
            preset=spec.preset,
            seed=spec.seed,
            steps=spec.steps,
            trained=int(score["checkpoint"]),
            settings=settings_text(spec.settings),
            protocol=protocol_text(folder, spec.episodes),
            commit=self.commit,
            kernels=kernels,
            torch=version("torch"),
            processor=processor(),
            seconds=round(seconds_so_far(folder) + evaluation, 1),
            fingerprint=fingerprint.digest,
            mean=float(score["mean"]),
            std=round(float(score["std"]), 6),
            episodes=int(score["episodes"]),
            date=datetime.now(UTC).isoformat(timespec="milliseconds"),
        )

    def _call(
        self, module: str, *words: object, log: str, seconds: float | None = None
    ) -> tuple[int, str]:
        command = [self.python, "-m", module, *map(str, words)]
        return self.children.run(
            command,
            cwd=self.site.worktree,
            env=environment(self.site),
            log=self.site.log(log),
            seconds=seconds,
        )

    def _reason(self, what: str, log: str) -> str:
        path = self.site.log(log)
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f"{what}: {lines[-1].strip() if lines else 'no reason given'} (see {path})"

"""Environments that are stepped in other processes."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle
import gymnasium as gym

from quantail.envs.config import EnvironmentConfig
from quantail.envs.families import find_family
from quantail.envs.source import EnvSource, name_of
from quantail.envs.vector import EpisodeLog, Outcome, Seen
from quantail.errors import QuantailError
from quantail.spaces import ActionSpec, ObservationSpec

MAX_LOSSES = 3  # of a worker in a row
PATIENCE = 5.0  # seconds that a process gets to close its environments, or to say where it is
PACKAGE = Path(__file__).parents[1]
# A worker ends when its connection does: the training process alone decides what a signal means.
CODE = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); from quantail.envs.worker import main; main()"
)
FRAME = re.compile(r'^  File "(.+)", line (\d+) in ', re.MULTILINE)


class WorkerEnvs:
    """Environments in several processes, each with some of them. The results are those of `LocalEnvs`.

    A worker that dies, or that does not answer in time, is replaced; `step` gives None for its
    environments, whose episodes must begin anew.
    """

    def __init__(
        self,
        source: EnvSource,
        config: EnvironmentConfig,
        specs: tuple[ObservationSpec, ActionSpec],
        num_envs: int,
        workers: int,
        timeout: float,
        warn: Callable[[str], None],
    ) -> None:
        if os.name != "posix":
            raise QuantailError("workers needs Linux or macOS: use workers=0, or --engine ray.")
        self.spec, self.actions = specs
        self.num_envs, self.timeout, self.warn = num_envs, timeout, warn
        self.idle: set[int] = set()  # environments of a new worker, which must begin an episode first
        job = _pickled(source, config)
        # The environments of worker w are those from bounds[w] to bounds[w + 1].
        self.bounds = [round(worker * num_envs / workers) for worker in range(workers + 1)]
        self.workers: list[_Worker] = []
        try:
            for first, last in zip(self.bounds, self.bounds[1:], strict=False):
                self.workers.append(_Worker(len(self.workers), job, last - first))
            for worker in self.workers:
                worker.connect()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        return self.num_envs

    def reset(self, seeds: Mapping[int, int]) -> dict[int, Seen]:
        return self._ask_each("reset", seeds, self.timeout)

    def step(self, actions: Sequence[int]) -> list[Outcome | None]:
        taken = [None if env in self.idle else action for env, action in enumerate(actions)]
        workers = range(len(self.workers))
        asked = {number: ("step", [taken[env] for env in self._envs_of(number)]) for number in workers}
        answers = self._ask(asked, self.timeout)
        outcomes: list[Outcome | None] = []
        for number in workers:
            outcomes += answers[number] or [None] * len(self._envs_of(number))
        return outcomes

    def replay(self, logs: Mapping[int, EpisodeLog]) -> dict[int, Seen | None]:
        steps = sum(len(log.actions) for log in logs.values())
        return self._ask_each("replay", logs, self.timeout * max(1, steps))

    def close(self) -> None:
        for worker in self.workers:
            worker.connection.close()  # all of them close their environments at the same time
        for worker in self.workers:
            worker.stop()

    def _ask_each(self, what: str, payload: Mapping[int, Any], timeout: float) -> dict[int, Any]:
        """Ask for some of the environments, again where a worker was lost; return answers by number."""
        found: dict[int, Any] = {}
        while len(found) < len(payload):
            asked = {}
            for number in range(len(self.workers)):
                own = self._envs_of(number)
                some = {env - own.start: payload[env] for env in own if env in payload.keys() - found}
                if some:
                    asked[number] = (what, some)
            for number, answer in self._ask(asked, timeout).items():
                first = self.bounds[number]
                found |= {first + env: one for env, one in (answer or {}).items()}
        self.idle -= found.keys()
        return {env: found[env] for env in payload}

    def _ask(self, asked: Mapping[int, tuple[str, Any]], timeout: float) -> dict[int, Any]:
        """Ask workers at the same time and return their answers; None for one that was replaced."""
        answers: dict[int, Any] = {}
        error = ""
        for number, message in asked.items():
            if not self.workers[number].send(message):
                self._replace(number)
                answers[number] = None
        deadline = time.monotonic() + timeout
        while len(answers) < len(asked):
            waiting = {self.workers[n].connection: n for n in asked if n not in answers}
            ready = wait(list(waiting), max(0.0, deadline - time.monotonic()))
            if not ready:
                for number in waiting.values():
                    self._replace(number, f"did not answer for {timeout:g} s")
                    answers[number] = None
            for connection in ready:
                number = waiting[connection]  # type: ignore[index]
                try:
                    kind, answer = self.workers[number].receive()
                except (EOFError, OSError):
                    self._replace(number)
                    kind, answer = "lost", None
                if kind == "error":
                    error = error or answer
                elif asked[number][0] == "step" and any(answer or ()):
                    self.workers[number].losses = 0
                answers[number] = answer
        if error:  # once no answer is left unread
            raise QuantailError(error)
        return answers

    def _replace(self, number: int, late: str = "") -> None:
        """Start a worker again that is lost, and say so; raise an error if that happens all the time."""
        worker = self.workers[number]
        where = worker.stop_and_tell(interrupt=bool(late))
        what = f"worker {number} {late or worker.ending()}{where}"
        worker.losses += 1
        if worker.losses >= MAX_LOSSES:
            raise QuantailError(f"{what}, the last of {MAX_LOSSES} losses in a row.")
        self.warn(f"{what}; it has been replaced, and its episodes are truncated.")
        self.idle |= {*self._envs_of(number)}
        worker.start()
        worker.connect()

    def _envs_of(self, number: int) -> range:
        return range(self.bounds[number], self.bounds[number + 1])


class _Worker:
    """A process with some of the environments, and the connection to it."""

    def __init__(self, number: int, job: bytes, count: int) -> None:
        self.number, self.job, self.count = number, job, count
        self.losses = 0
        self.start()

    def start(self) -> None:
        """Start the process."""
        self._faults = tempfile.TemporaryFile()  # noqa: SIM115  (where the process says where it is)
        self.connection: Connection
        self.connection, theirs = Pipe()
        shared = [theirs.fileno(), self._faults.fileno()]
        # Workers find modules in the same folders, in the same order, as this process, and nowhere else.
        paths = [*map(os.path.abspath, sys.path), str(PACKAGE.parent)]
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", CODE, *map(str, shared)],
            stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
            pass_fds=shared,
            process_group=0,
        )
        theirs.close()

    def connect(self) -> None:
        """Wait until the process has made its environments."""
        try:
            self.connection.send_bytes(self.job)
            self.connection.send(self.count)
            kind, answer = self.receive()
        except (EOFError, OSError) as error:
            self.process.wait()
            raise QuantailError(f"worker {self.number} cannot start: it {self.ending()}.") from error
        if kind == "error":
            raise QuantailError(answer)

    def send(self, message: Any) -> bool:
        """Send a message; return whether the process could take it."""
        try:
            self.connection.send(message)
        except OSError:
            return False
        return True

    def receive(self) -> Any:
        """Return the next answer: a word, and what it is about."""
        return self.connection.recv()

    def ending(self) -> str:
        """Return how the process ended, in words."""
        status = self.process.wait(PATIENCE)
        if status >= 0:
            return f"ended with status {status}"
        return f"was ended by {signal.Signals(-status).name}"

    def stop_and_tell(self, *, interrupt: bool) -> str:
        """End the process, and return the line of the environment's code at which it was, if known."""
        if interrupt:
            self.process.send_signal(signal.SIGUSR1)  # writes where it is
            deadline = time.monotonic() + PATIENCE
            while not os.fstat(self._faults.fileno()).st_size and time.monotonic() < deadline:
                time.sleep(0.01)
        text = os.pread(self._faults.fileno(), 1_000_000, 0).decode(errors="replace")
        places = [one for one in FRAME.findall(text) if not one[0].startswith(str(PACKAGE))]
        if interrupt:
            self.process.kill()
        self.stop()
        return f" in {Path(places[0][0]).name}, line {places[0][1]}" if places else ""

    def stop(self) -> None:
        """End the process."""
        self.connection.close()  # the process then ends by itself
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._faults.close()


def _pickled(source: EnvSource, config: EnvironmentConfig) -> bytes:
    """Return all that a worker needs to make the environment."""
    family = find_family(source)
    registered = gym.registry.get(source) if isinstance(source, str) else None
    try:
        job: bytes = cloudpickle.dumps((source, config, (family.name, type(family)), registered))
    except Exception as error:
        raise QuantailError(
            f"{name_of(source)} cannot be sent to a worker ({type(error).__name__}: {error}): let the "
            "function make all that it needs, pass the id of a registered environment as module:id, or "
            "use workers=0."
        ) from error
    return job

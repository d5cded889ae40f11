"""What runs in a worker process: some environments, stepped as another process asks."""

import faulthandler
import signal
import sys
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import cloudpickle
import gymnasium as gym

from quantail import registry
from quantail.envs.make import make
from quantail.envs.vector import LocalEnvs, step
from quantail.errors import QuantailError


def main() -> None:
    """Answer the process that started this one, until it closes the connection."""
    number, faults = map(int, sys.argv[1:])
    faulthandler.enable(faults)
    faulthandler.register(signal.SIGUSR1, faults, all_threads=False)
    with Connection(number) as connection, suppress(EOFError, ConnectionError):
        _serve(connection)


def _serve(connection: Connection) -> None:
    job, count = connection.recv_bytes(), connection.recv()
    try:
        envs = _envs(job, count)
    except Exception as error:
        connection.send(("error", _sentence(error)))
        return
    try:
        connection.send(("ready", None))
        while True:
            what, payload = connection.recv()
            try:
                answer = ("done", _answer(envs, what, payload))
            except Exception as error:
                answer = ("error", _sentence(error))
            connection.send(answer)
    finally:
        envs.close()


def _answer(envs: LocalEnvs, what: str, payload: Any) -> Any:
    if what == "step":  # an action is None where no episode has begun
        pairs = zip(envs.envs, payload, strict=True)
        return [None if action is None else step(env, action) for env, action in pairs]
    return envs.reset(payload) if what == "reset" else envs.replay(payload)


def _envs(job: bytes, count: int) -> LocalEnvs:
    source, config, (name, family), registered = cloudpickle.loads(job)
    registry.adopt("family", name, family)
    if registered is not None:
        gym.registry.setdefault(registered.id, registered)
    return LocalEnvs([make(source, config) for _ in range(count)])


def _sentence(error: Exception) -> str:
    if isinstance(error, QuantailError):
        return str(error)
    return (
        f"an environment failed in a worker: {''.join(traceback.format_exception_only(error)).strip()}"
    )

"""Joining a Ray cluster, or starting one of this machine's cores."""

import os
import socket
from typing import Any

from quantail.errors import QuantailError

KNOCK = 5.0  # seconds for a cluster to answer


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_ray() -> Any:
    """The module, or one sentence where it is not installed."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as error:
        raise QuantailError(f"engine ray needs Ray: pip install 'quantail[ray]' ({error}).") from error
    return ray


def connect(address: str) -> Any:
    """Ray, joined to the cluster at an address; `local` starts one of this machine's cores."""
    ray = load_ray()
    if ray.is_initialized():
        raise QuantailError("Ray is in use in this process already: end it with ray.shutdown() first.")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        options |= {"num_cpus": cores(), "include_dashboard": False}
    if not address.startswith("ray://"):
        # A client job is one whose workers do not look for modules in the driver's working folder first.
        options["job_config"] = ray.job_config.JobConfig(_client_job=True)
    try:
        _require_answer(address)
        ray.init(address=address, **options)
    except Exception as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise QuantailError(
            f"no Ray cluster answers at {address}: start one with `ray start --head` and name its "
            f"address, or take local ({told})."
        ) from error
    return ray


def _require_answer(address: str) -> None:
    """Knock where an address names a host and a port: Ray itself would wait for a minute and more."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=KNOCK).close()

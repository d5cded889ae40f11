"""Connect to a Ray cluster, or start one on this machine."""

import os
import socket
from typing import Any

from quantail.errors import QuantailError
from quantail.extras import require_extra

TIMEOUT = 5.0  # seconds for a cluster to answer


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load_ray() -> Any:
    """Import Ray; raise an error that says how to install it if it is missing."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    require_extra("ray", "engine ray")
    import ray

    return ray


def connect(address: str) -> Any:
    """Connect to the cluster at an address and return Ray; `local` starts one on this machine."""
    ray = load_ray()
    if ray.is_initialized():
        raise QuantailError("Ray is in use in this process already: end it with ray.shutdown() first.")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        options |= {"num_cpus": cores(), "include_dashboard": False}
    if not address.startswith("ray://"):
        # The workers of a client job do not search the driver's working folder first for modules.
        options["job_config"] = ray.job_config.JobConfig(_client_job=True)
    try:
        _require_answer(address)
        ray.init(address=address, **options)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise QuantailError(
            f"no Ray cluster answers at {address}: start one with `ray start --head` and give its "
            f"address, or use local ({reason})."
        ) from error
    return ray


def _require_answer(address: str) -> None:
    """Try to connect if the address has a host and a port, because Ray itself waits over a minute."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        socket.create_connection((host, int(port)), timeout=TIMEOUT).close()

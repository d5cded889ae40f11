"""Save an agent without the run that trained it."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from quantail.envs import find_family
from quantail.envs.families import fallback_family
from quantail.envs.source import FUNCTION, name_of
from quantail.errors import DIVERGED, QuantailError
from quantail.evaluation.protocols import own_protocol
from quantail.runs.folder import RunFolder, RunInfo

if TYPE_CHECKING:
    from quantail.agents.agent import Agent


def save_agent(agent: "Agent", folder: str | Path, *, half: bool = False) -> None:
    """Write the weights and the settings of an agent to a new folder; `half` rounds to 16 bits."""
    config = agent.config
    if str(agent.risk) != config.risk.played:
        config = replace(config, risk=replace(config.risk, evaluation_risk=str(agent.risk)))
    name = name_of(agent.env)
    if name.startswith(FUNCTION):  # which a loaded agent does not have
        family = fallback_family(config.environment)
    else:
        family = find_family(agent.env, config.environment)
    info = RunInfo(
        name,
        config,
        agent.observation,
        agent.actions,
        own_protocol(family, config),
        config.run.threads,
        agent.network.kernels,
    )
    RunFolder(folder).save_agent(info, agent.checkpoint, weights_of(agent, half=half))


def weights_of(agent: "Agent", *, half: bool = False) -> dict[str, NDArray[Any]]:
    """Return the weights of an agent by name, rounded to 16 bits if `half`."""
    weights = {name: value.cpu().numpy() for name, value in agent.network.state_dict().items()}
    if not all(np.isfinite(value).all() for value in weights.values()):
        raise QuantailError(f"the agent holds weights that are not finite: {DIVERGED}")
    if not half:
        return weights
    largest = np.finfo(np.float16).max
    for name, value in weights.items():
        if value.dtype.kind == "f":
            if np.abs(value).max(initial=0.0) > largest:
                raise QuantailError(f"{name} has weights above {largest:g}: save them without half.")
            weights[name] = value.astype(np.float16)
    return weights

"""Optional packages, and the extra of Quantail that installs each of them.

Modules import optional packages inside the functions that use them, after `require_extra`. The core
works without any of them.
"""

from dataclasses import dataclass
from importlib import import_module

from quantail.errors import QuantailError


@dataclass(frozen=True)
class Extra:
    """The packages of an extra, as names on PyPI and of modules, and what they are for."""

    packages: dict[str, str]
    purpose: str


EXTRAS = {
    "fast": Extra({"numba": "numba"}, "compiled kernels, with which IQN trains about twice as fast"),
    "atari": Extra({"ale-py": "ale_py", "pillow": "PIL"}, "ALE games"),
    "minatar": Extra({"MinAtar": "minatar.gym"}, "MinAtar games"),
    "plots": Extra({"matplotlib": "matplotlib", "jinja2": "jinja2"}, "figures and reports"),
    "tensorboard": Extra({"tensorboard": "tensorboard"}, "train --tensorboard"),
    "wandb": Extra({"wandb": "wandb"}, "train --wandb"),
    "web": Extra(
        {"fastapi": "fastapi", "uvicorn": "uvicorn", "websockets": "websockets", "pillow": "PIL"},
        "quantail watch and quantail demo",
    ),
    "video": Extra({"imageio-ffmpeg": "imageio_ffmpeg", "matplotlib": "matplotlib"}, "quantail video"),
    "play": Extra({"pygame": "pygame"}, "quantail play"),
    "stats": Extra(
        {"rliable": "rliable.library", "pandas": "pandas"},
        "confidence intervals over seeds, Run.frame",
    ),
    "ray": Extra({"ray": "ray"}, "train --engine ray, study --engine ray"),
}


def require_extra(extra: str, user: str, only: str = "") -> None:
    """Raise an error that names the missing package and its extra, if one is missing.

    `user` is the subject of the sentence, such as "quantail watch"; `only` is the package that it needs,
    if it does not need all of the extra.
    """
    for package, module in EXTRAS[extra].packages.items():
        if only not in ("", package):
            continue
        try:
            import_module(module)
        except ImportError as error:
            # A package that is installed and cannot be imported lacks something else: say what.
            absent = isinstance(error, ModuleNotFoundError) and error.name == module.partition(".")[0]
            reason = "" if absent else f" ({error})"
            raise QuantailError(
                f"{user} needs {package}: pip install 'quantail[{extra}]'{reason}."
            ) from error

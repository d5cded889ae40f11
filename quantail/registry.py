"""Parts by name: built in, registered in Python, brought by a plug-in, or named as `module:Class`.

A part is found by its name (`find`) only after it was built in, registered or admitted. `admit` imports
a part that is named as `module:Class`; where a file names it, the user must trust the module. So reading
a run's settings never executes code, and a lookup that forgot to ask cannot do so either.

Installed packages bring parts as plug-ins (see `plugins.py`), which are loaded when a part that is not
built in is first looked up.
"""

import importlib
import re
from dataclasses import Field, dataclass
from functools import partial
from typing import Any

from quantail import plugins
from quantail.errors import QuantailError, did_you_mean, reason_of
from quantail.part_config import check_config, fields_of, is_flat
from quantail.trust import Origin, import_named, is_missing, module_of
from quantail.validation import either

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Kind:
    """A kind of part: what every one of them is, and the built-in ones by name."""

    base: str  # module:Class, of which a part is a subclass (or an instance: see `by_value`)
    built_in: str  # module:NAME of a dict
    by_value: bool = False  # whether parts are instances rather than classes


KINDS: dict[str, Kind] = {
    "torso": Kind("quantail.networks:Torso", "quantail.networks.torsos:TORSOS"),
    "head": Kind("quantail.networks:ReturnHead", "quantail.networks.heads:HEADS"),
    "target": Kind("quantail.learning.targets:Target", "quantail.learning.targets:TARGETS"),
    "optimizer": Kind("torch.optim:Optimizer", "quantail.learning.optimizers:OPTIMIZERS"),
    "schedule": Kind("quantail.learning.schedules:Schedule", "quantail.learning.schedules:SCHEDULES"),
    "learner": Kind("quantail.learning.learner:Learner", "quantail.learning.learner:LEARNERS"),
    "sampler": Kind("quantail.replay:Sampler", "quantail.replay:SAMPLERS"),
    "exploration": Kind(
        "quantail.agents.exploration:Exploration", "quantail.agents.exploration:EXPLORATIONS"
    ),
    "risk": Kind("quantail.risk:RiskMeasure", "quantail.risk:MEASURES"),
    "agent": Kind("quantail.recipes:Recipe", "quantail.recipes:AGENTS", by_value=True),
    "preset": Kind("quantail.recipes:Preset", "quantail.recipes:PRESETS", by_value=True),
    "family": Kind("quantail.envs.family:EnvFamily", "quantail.envs.families:FAMILIES"),
    "protocol": Kind(
        "quantail.evaluation.protocols:Protocol", "quantail.evaluation.protocols:NAMED", by_value=True
    ),
    "callback": Kind("quantail.training.callbacks:Callback", "quantail.training.callbacks:CALLBACKS"),
}


_registered: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}  # by the names that users chose
_admitted: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}  # by module:Class


def register(kind: str, name: str, part: Any, *, replace: bool = False) -> None:
    """Give a part of your own a name, by which settings, the command line and errors know it.

        quantail.register("head", "mine", MyHead)  # or quantail.register_head("mine", MyHead)
        quantail.train("CartPole-v1", head="mine")

    Args:
        kind: One of "torso", "head", "target", "optimizer", "schedule", "learner", "sampler",
            "exploration", "risk", "agent", "preset", "family", "protocol" and "callback".
        name: The name.
        part: A subclass of that kind's base class; a `Recipe` for an agent, a `Preset` for a preset,
            and a `Protocol` for a protocol.
        replace: Whether to replace a part that was registered under the same name.
    """
    if kind not in KINDS:
        raise QuantailError(f"unknown kind of part {kind!r}: it takes {', '.join(KINDS)}.")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise QuantailError(
            f"the name of a {kind} takes letters, digits, - and _, not {name!r}: module:Class needs no "
            "registration."
        )
    _check(kind, name, part)
    if name in built_in(kind):
        raise QuantailError(f"{kind} {name!r} is built in: choose another name.")
    known = _registered[kind].get(name)
    if known is not None and known is not part and not replace:
        raise QuantailError(
            f"{kind} {name!r} is registered already: choose another name, or pass replace=True."
        )
    _registered[kind][name] = part


register_torso = partial(register, "torso")
"""Give a name to a torso, a subclass of `Torso`."""
register_head = partial(register, "head")
"""Give a name to a return head, a subclass of `ReturnHead`."""
register_target = partial(register, "target")
"""Give a name to a target, a subclass of `Target`."""
register_optimizer = partial(register, "optimizer")
"""Give a name to an optimizer."""
register_schedule = partial(register, "schedule")
"""Give a name to a learning-rate schedule."""
register_learner = partial(register, "learner")
"""Give a name to a learner."""
register_sampler = partial(register, "sampler")
"""Give a name to a replay sampler."""
register_exploration = partial(register, "exploration")
"""Give a name to a way to explore while training."""
register_risk = partial(register, "risk")
"""Give a name to a risk measure, a subclass of `RiskMeasure`."""
register_agent = partial(register, "agent")
"""Give a name to an agent, a `Recipe`."""
register_preset = partial(register, "preset")
"""Give a name to a preset, a `Preset`."""
register_family = partial(register, "family")
"""Give a name to a family of environments, a subclass of `EnvFamily`."""
register_protocol = partial(register, "protocol")
"""Give a name to a protocol of evaluation, a `Protocol`."""
register_callback = partial(register, "callback")
"""Give a name to a callback, a subclass of `Callback`."""


def built_in(kind: str) -> dict[str, Any]:
    """Return the built-in parts of a kind by name."""
    parts: dict[str, Any] = _attribute(KINDS[kind].built_in)
    return parts


def parts(kind: str) -> dict[str, Any]:
    """Return all parts of a kind that have a name, built-in ones first."""
    load_plugins()
    return built_in(kind) | _registered[kind]


def is_known(kind: str, name: str) -> bool:
    """Return whether `find` finds the part."""
    return _lookup(kind, name) is not None


def find(kind: str, name: str) -> Any:
    """Return a part by its name, or by the `module:Class` under which it was admitted."""
    found = _lookup(kind, name)
    if found is None:
        raise unknown(kind, name)
    return found


def admit(kind: str, name: str, origin: Origin | None = None) -> Any:
    """Return a part; import it if the name is `module:Class` and the part is not known yet.

    `origin` is the file that names it: the user must trust the module. Without it, the user named it.
    """
    found = _lookup(kind, name)
    if found is not None:
        return found
    module = module_of(name)
    if not module:
        raise unknown(kind, name, origin)
    if origin is not None and is_missing(module):
        package = module.partition(".")[0]
        raise QuantailError(
            f"{origin.file} names the {kind} {name!r}, but there is no module {package} here: install "
            "the package that brings it."
        )
    try:
        part: Any = import_named(module, origin)
        for attribute in name.partition(":")[2].split("."):
            part = getattr(part, attribute)
    except QuantailError:
        raise
    except Exception as error:
        raise QuantailError(f"{kind} {name!r} cannot be imported ({reason_of(error)}).") from error
    _check(kind, name, part)
    _admitted[kind][name] = part
    return part


def adopt(kind: str, name: str, part: Any) -> None:
    """Add a part that another process, which runs the same code, has found."""
    if _lookup(kind, name) is None:
        known = _admitted if ":" in name else _registered
        known[kind][name] = part


def text_of(kind: str, part: Any) -> str:
    """Return the text by which a run remembers a part, given its name or the part itself.

    A part from outside is remembered as `module:Class`, if it can be imported again by that; else by the
    name under which it is registered. A class that has no name yet is admitted.
    """
    given = part if isinstance(part, str) else ""
    if given:
        part = _lookup(kind, given)
    elif part is None:
        raise QuantailError(f"{kind} takes a name, module:Class or a class, not None.")
    if part is None or given in built_in(kind):
        return given
    for known in (built_in, parts):  # built-in ones first, without loading plug-ins
        name = next((one for one, found in known(kind).items() if found is part), "")
        if name in built_in(kind):
            return name
    if not isinstance(part, type):
        raise QuantailError(f"{kind} takes a name, module:Class or a class, not {part!r}.")
    text = _code_of(part)
    if name:
        return name if text.startswith("__main__:") or "<locals>" in text else text
    if given:
        return given  # by which it was admitted
    _check(kind, text, part)
    _admitted[kind][text] = part
    return text


def label(kind: str, text: str) -> str:
    """Return the text of a part for display: with the name under which it is registered, if it is.

    The text of a risk measure may end with its numbers.
    """
    if ":" in text:
        for name, part in parts(kind).items():
            code = _code_of(part)
            if text == code or text.startswith(f"{code}:"):
                return name + text.removeprefix(code)
    return text


def flat_fields(kind: str, name: str) -> tuple[str, ...]:
    """Return the settings of a part that have flat names: those that a built-in `Config` declares."""
    return tuple(one.name for one in fields_of(find(kind, name)) if is_flat(find(kind, name), one.name))


def own_fields(kind: str, name: str) -> dict[str, Field[Any]]:
    """Return the settings that a part from outside declares itself: their names are dotted."""
    part = find(kind, name)
    return {one.name: one for one in fields_of(part) if not is_flat(part, one.name)}


def unknown(kind: str, name: str, origin: Origin | None = None) -> QuantailError:
    """Return the error for an unknown part."""
    module = module_of(name)
    if module:
        return QuantailError(
            f"{kind} {name!r} is not loaded: trust its module with --trust {module} "
            f"(or trust=[{module!r}] in Python), or register it first."
        )
    known = parts(kind)
    failed = "".join(
        f" The plug-in {one} could not be loaded: {why}." for one, why in plugins.failed.items()
    )
    where = f"{origin.file} names the {kind} {name!r}" if origin else f"unknown {kind} {name!r}"
    verb = "which is not registered: register it first, or use" if origin else "it takes"
    mark = "," if origin else ":"
    names = either([*known, *([] if KINDS[kind].by_value else ["module:Class"])])
    return QuantailError(f"{where}{mark} {verb} {names}.{did_you_mean(name, known)}{failed}")


def load_plugins() -> None:
    """Load every installed plug-in once; warn about one that fails, and go on without its parts."""
    plugins.load_once(_registered)


def _lookup(kind: str, name: str) -> Any:
    """Return a part that is built in, registered or admitted; None for any other."""
    for known in (built_in(kind), _registered[kind], _admitted[kind]):
        if name in known:
            return known[name]
    load_plugins()
    if name in _registered[kind]:
        return _registered[kind][name]
    for part in _registered[kind].values():  # registered under another name than module:Class
        if _code_of(part) == name:
            return part
    return None


def _check(kind: str, name: str, part: Any) -> None:
    """Raise an error if a part is not of its kind."""
    base = _attribute(KINDS[kind].base)
    public = KINDS[kind].base.partition(":")
    if KINDS[kind].by_value:
        if not isinstance(part, base):
            raise QuantailError(f"{kind} {name!r} takes a quantail.{public[2]}, not {part!r}.")
    elif not isinstance(part, type) or not issubclass(part, base):
        raise QuantailError(
            f"{kind} {name!r} is not a subclass of {public[2]} ({public[0]}): it is {part!r}."
        )
    elif kind != "risk":
        check_config(kind, name, part)


def _attribute(text: str) -> Any:
    """Return an attribute of one of Quantail's own modules (or torch's) from `module:name`."""
    module, _, name = text.partition(":")
    return getattr(importlib.import_module(module), name)


def _code_of(part: Any) -> str:
    """Return `module:Class` of a part, by which it can be imported."""
    return f"{getattr(part, '__module__', '')}:{getattr(part, '__qualname__', '')}"

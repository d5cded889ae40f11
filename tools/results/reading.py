"""Read the plan of the queue from results/queue.toml."""

import tomllib
from pathlib import Path
from typing import Any

from quantail.errors import QuantailError, did_you_mean
from quantail.recipes.for_env import configured
from tools.results.plan import Plan, Spec, Study

KEYS = {
    "name": str,
    "title": str,
    "envs": list,
    "agents": list,
    "seeds": list,
    "steps": int,
    "preset": str,
    "settings": dict,
    "grid": dict,
    "evaluation_every": int,
    "evaluation_episodes": int,
    "final_episodes": int,
    "reported": bool,
    "background": bool,
    "threads": int,
    "hours": int | float,
}
OPTIONAL = {
    "settings": {},
    "grid": {},
    "reported": True,
    "background": True,
    "threads": 1,
    "hours": 0,
}


def read_plan(path: Path) -> Plan:
    """Read a queue; raise an error that names the study and the key that is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise QuantailError(f"the queue {path} cannot be read: {error}") from error
    entries = content.pop("study", [])
    if content or not isinstance(entries, list):
        wrong = ", ".join(content) or "a study of the wrong kind"
        raise QuantailError(f"the queue {path} has {wrong}: it takes [[study]] alone.")
    studies = tuple(_study(path, entry) for entry in entries)
    names = [study.name for study in studies]
    if twice := {name for name in names if names.count(name) > 1}:
        raise QuantailError(f"the queue {path} has two studies {', '.join(twice)}.")
    return Plan(studies)


def _study(path: Path, entry: dict[str, Any]) -> Study:
    where = f"the queue {path}, study {entry.get('name', '?')!r}"
    for key, value in entry.items():
        if key not in KEYS:
            raise QuantailError(f"{where}: there is no key {key!r}.{did_you_mean(key, KEYS)}")
        if not isinstance(value, KEYS[key]) or (KEYS[key] is int and isinstance(value, bool)):
            raise QuantailError(f"{where}: {key} cannot be {value!r}.")
    if missing := [key for key in KEYS if key not in entry and key not in OPTIONAL]:
        raise QuantailError(f"{where}: it needs {', '.join(missing)}.")
    values = OPTIONAL | entry
    if not all(isinstance(one, list) and one for one in values["grid"].values()):
        raise QuantailError(f"{where}: every setting of the grid takes a list of values.")
    return Study(**{key: tuple(v) if isinstance(v, list) else v for key, v in values.items()})


def require_trainable(plan: Plan) -> None:
    """Raise an error if an agent, a preset or a setting of the plan does not exist."""
    seen = set()
    for study in plan.studies:
        for spec in study.runs():
            key = (spec.env, spec.agent, spec.preset, spec.settings)
            if key not in seen:
                seen.add(key)
                _compose(study, spec)


def _compose(study: Study, spec: Spec) -> None:
    changes = dict(spec.settings) | {"agent": spec.agent, "steps": spec.steps}
    try:
        configured(spec.env, spec.preset, changes)
    except QuantailError as error:
        raise QuantailError(f"the queue's study {study.name!r}, {spec.label}: {error}") from error

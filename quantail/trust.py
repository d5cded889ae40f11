"""Names of code such as `module:name`, and the modules that a file may import.

Runs, presets and studies are data: reading one must not execute code that the file chooses. A module
that a file names is imported only if the user trusts it: with `--trust` or `trust=`, or because the user
names an environment or a risk measure in that module.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from quantail.errors import QuantailError

UTILITY = "utility:"  # before a module:function that is a utility of returns
Trust = str | Iterable[str]  # names of modules


@dataclass(frozen=True)
class Origin:
    """A file that may name code, and the modules that the user trusts."""

    file: str
    trusted: frozenset[str]

    def allows(self, module: str) -> bool:
        """Return whether the module, or a package that contains it, is trusted."""
        parts = module.split(".")
        return any(".".join(parts[:count]) in self.trusted for count in range(1, len(parts) + 1))

    def require(self, *modules: str) -> None:
        """Raise an error that says how to trust the modules, unless all are trusted."""
        for module in modules:
            if not _is_module(module):
                raise QuantailError(
                    f"{self.file} names {module!r}, which cannot be the name of a module."
                )
        refused = sorted({module for module in modules if not self.allows(module)})
        if refused:
            wanted = packages_of(refused)
            raise QuantailError(
                f"{self.file} names the module{'s' * (len(refused) > 1)} {', '.join(refused)}: give"
                f"{trust_flags(refused)} (or trust={wanted!r} in Python) if you trust "
                f"{'its' if len(refused) == 1 else 'their'} code."
            )


def origin_of(file: str | Path, trust: Trust, *named: object) -> Origin:
    """Return the origin of names in a file.

    `trust` lists the modules that the user trusts. `named` are other arguments of the user: the module
    of any string such as `module:name` among them is trusted too.
    """
    return Origin(str(file), trusted_modules(trust) | modules_of(named))


def trusted_modules(trust: Trust) -> frozenset[str]:
    """Return the modules that the user trusts; raise an error if a name cannot be a module."""
    names = frozenset([trust] if isinstance(trust, str) else trust)
    for name in names:
        if not isinstance(name, str) or not _is_module(name):
            raise QuantailError(f"trust takes the name of a module, such as my_envs, not {name!r}.")
    return names


def modules_of(names: Iterable[object]) -> frozenset[str]:
    """Return the modules of all strings of the form `module:name`."""
    return frozenset(module_of(name) for name in names if isinstance(name, str)) - {""}


def module_of(name: str) -> str:
    """Return the module of `module:name`, or "" for `CartPole-v1`, `cvar:0.1` and `ray://host:1`."""
    module, _, rest = name.strip().removeprefix(UTILITY).partition(":")
    rest, _, numbers = rest.partition(":")  # of a risk measure, such as my_risks:Spread:0.1,3
    if numbers and not all(_is_number(one) for one in numbers.split(",")):
        return ""
    # A class may be called Nan or Inf, which Python also reads as numbers.
    is_name = rest.isidentifier() or (rest and not rest.startswith("/") and not _is_number(rest))
    return module if is_name and _is_module(module) else ""


def packages_of(modules: Iterable[str]) -> list[str]:
    """Return what to trust for these modules: for several modules of a package, the package."""
    by_package: dict[str, set[str]] = {}
    for module in modules:
        by_package.setdefault(module.partition(".")[0], set()).add(module)
    return sorted(package if len(found) > 1 else found.pop() for package, found in by_package.items())


def trust_flags(modules: Iterable[str]) -> str:
    """Return the --trust flags for these modules, with a space before each."""
    return "".join(f" --trust {module}" for module in packages_of(modules))


def is_missing(module: str) -> bool:
    """Return whether there is no such module, as far as can be said without importing anything."""
    package = module.partition(".")[0]
    if package in sys.modules or importlib.util.find_spec(package) is not None:
        return False
    return importlib.machinery.PathFinder.find_spec(package, [""]) is None


def import_named(module: str, origin: Origin | None) -> ModuleType:
    """Import a module that the user named (`origin` is None), or a trusted one that a file names."""
    if origin is not None:
        origin.require(module)
    return importlib.import_module(module)


_added: set[str] = set()  # folders that are searched only for modules that the user names


def add_working_folder() -> None:
    """Append the working folder to the search path, after all installed modules."""
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.append(folder)
        _added.add(folder)


def is_added(folder: Path) -> bool:
    """Return whether a folder is searched only because `add_working_folder` added it."""
    return str(folder) in _added


def _is_module(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

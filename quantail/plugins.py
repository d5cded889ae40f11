"""Plug-ins: installed packages that bring parts.

A package names an entry point of the group `quantail.plugins`: a module that registers its parts when it
is imported, or a function that does so when it is called.
"""

import warnings
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from quantail.errors import reason_of
from quantail.trust import is_added

GROUP = "quantail.plugins"
failed: dict[str, str] = {}  # plug-ins that could not be loaded, and why
_loaded = False


class PluginWarning(UserWarning):
    """An installed plug-in could not be loaded."""


def load_once(registered: dict[str, dict[str, Any]]) -> None:
    """Load every installed plug-in, in the order of their names, the first time this is called.

    `registered` holds the parts by kind and name, to which plug-ins add. One that fails causes a
    warning, and what it has added is taken away again.
    """
    global _loaded
    if _loaded:
        return
    _loaded = True  # before they are loaded, because a plug-in may look up parts itself
    for point in sorted(entry_points(group=GROUP)):
        if not _is_installed(point):
            continue
        before = {kind: dict(parts) for kind, parts in registered.items()}
        try:
            _load(point)
        except (Exception, SystemExit) as error:
            registered.update(before)
            failed[point.name] = reason_of(error)
            warnings.warn(
                f"the plug-in {point.name} ({point.value}) could not be loaded, so its parts are not "
                f"available: {failed[point.name]}.",
                PluginWarning,
                stacklevel=2,
            )


def _load(point: EntryPoint) -> None:
    loaded = point.load()
    if callable(loaded):
        loaded()


def _is_installed(point: EntryPoint) -> bool:
    """Return whether an entry point is not in a working folder that Quantail searches for modules."""
    return point.dist is None or not is_added(Path(str(point.dist.locate_file(""))))

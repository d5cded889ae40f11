"""What each room of the package may import."""

import ast
from pathlib import Path

import pytest

import quantail

PACKAGE = Path(quantail.__file__).parent

# Rooms that must not know of those on the right.
EVERYTHING = (
    "envs",
    "files",
    "cli",
    "training",
    "networks",
    "learning",
    "replay",
    "acting",
    "risk",
    "settings",
)
MUST_NOT_IMPORT = {
    "registry.py": EVERYTHING,
    "startup.py": (*EVERYTHING, "errors", "registry"),
    "risk.py": ("envs", "files", "cli", "training", "networks", "learning", "replay"),
    "networks": ("envs", "files", "cli", "training", "replay", "acting", "learning"),
    "learning": ("envs", "files", "cli", "training", "replay", "acting"),
    "replay": ("envs", "cli", "training", "networks", "acting"),
    "envs": ("cli", "training", "networks", "learning", "replay", "acting"),
    "acting": ("cli", "training", "replay", "files"),
    "evaluation": ("cli", "training", "replay"),
    "training": ("cli", "experiments"),
    "experiments": ("cli", "viewing"),
    "viewing": ("cli",),
}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("room", MUST_NOT_IMPORT)
def test_a_room_knows_nothing_of_the_rooms_behind_it(room):
    place = PACKAGE / room
    for path in [place] if place.is_file() else place.rglob("*.py"):
        for module in imports_of(path):
            parts = module.split(".")
            if parts[0] == "quantail" and len(parts) > 1:
                assert parts[1] not in MUST_NOT_IMPORT[room], f"{path} imports {module}"


def test_nothing_is_ever_unpickled():
    for path in PACKAGE.rglob("*.py"):
        assert not {"pickle", "cloudpickle", "joblib"} & set(imports_of(path)), path
        assert "torch.load" not in path.read_text(encoding="utf-8"), path


def test_only_the_registry_imports_a_module_by_a_name_from_outside():
    known = {"registry.py", "__init__.py", "cli/main.py", "cli/doctor.py"}  # the others: names of ours
    for path in PACKAGE.rglob("*.py"):
        if str(path.relative_to(PACKAGE)) not in known:
            text = path.read_text(encoding="utf-8")
            assert "importlib.import_module" not in text, path
            assert "__import__" not in text, path

"""Which packages each package may import."""

import ast
from pathlib import Path

import pytest

import quantail

PACKAGE = Path(quantail.__file__).parent
EVERYTHING = (
    "envs",
    "files",
    "cli",
    "training",
    "networks",
    "learning",
    "replay",
    "agents",
    "risk",
    "settings",
)
# Packages and modules of quantail, and those that they must not import.
MUST_NOT_IMPORT = {
    "registry.py": EVERYTHING,
    "startup.py": (*EVERYTHING, "errors", "registry"),
    "risk.py": ("envs", "files", "cli", "training", "networks", "learning", "replay"),
    "networks": ("envs", "files", "cli", "training", "replay", "agents", "learning"),
    "learning": ("envs", "files", "cli", "training", "replay", "agents"),
    "replay": ("envs", "cli", "training", "networks", "agents"),
    "envs": ("cli", "training", "networks", "learning", "replay", "agents"),
    "agents": ("cli", "training", "replay", "files"),
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


@pytest.mark.parametrize("package", MUST_NOT_IMPORT)
def test_a_package_does_not_import_the_packages_above_it(package):
    root = PACKAGE / package
    assert root.exists()
    for path in [root] if root.is_file() else root.rglob("*.py"):
        for module in imports_of(path):
            parts = module.split(".")
            if parts[0] == "quantail" and len(parts) > 1:
                assert parts[1] not in MUST_NOT_IMPORT[package], f"{path} imports {module}"


def test_nothing_is_ever_unpickled():
    for path in PACKAGE.rglob("*.py"):
        assert not {"pickle", "cloudpickle", "joblib"} & set(imports_of(path)), path
        assert "torch.load" not in path.read_text(encoding="utf-8"), path


def test_only_the_registry_imports_a_module_by_a_name_from_outside():
    # All but the registry import only Quantail's own modules by name.
    known = {"registry.py", "__init__.py", "cli/main.py", "cli/doctor.py"}
    for path in PACKAGE.rglob("*.py"):
        if str(path.relative_to(PACKAGE)) not in known:
            text = path.read_text(encoding="utf-8")
            assert "importlib.import_module" not in text, path
            assert "__import__" not in text, path

"""Which packages each package may import."""

import ast
from pathlib import Path

import pytest

import quantail
from quantail.agents.exploration import EXPLORATIONS
from quantail.config import PARTS as NAMING
from quantail.envs.families import FAMILIES
from quantail.learning.optimizers import OPTIMIZERS
from quantail.learning.targets import TARGETS
from quantail.networks.heads import HEADS
from quantail.networks.torsos import TORSOS
from quantail.replay import SAMPLERS
from quantail.risk import MEASURES

PACKAGE = Path(quantail.__file__).parent
EVERYTHING = (
    "envs",
    "files",
    "cli",
    "training",
    "runs",
    "collecting",
    "networks",
    "learning",
    "replay",
    "agents",
    "risk",
    "config",
    "recipes",
)
# Packages and modules of quantail, and those that they must not import.
MUST_NOT_IMPORT = {
    "trust.py": (*EVERYTHING, "registry"),
    "plugins.py": (*EVERYTHING, "registry"),
    "registry.py": EVERYTHING,
    "part_config.py": (*EVERYTHING, "registry", "settings", "parts"),
    "settings.py": (*EVERYTHING, "registry", "parts"),
    "parts.py": EVERYTHING,
    "schedules.py": (*EVERYTHING, "errors", "registry", "settings"),
    "stateful.py": (*EVERYTHING, "registry", "settings"),
    "startup.py": (*EVERYTHING, "errors", "registry", "trust"),
    "batch.py": (*EVERYTHING, "errors", "registry", "distributions"),
    "spaces.py": (*EVERYTHING, "registry", "distributions"),
    "distributions.py": EVERYTHING,
    "taus.py": EVERYTHING,
    "risk": ("envs", "files", "cli", "training", "networks", "learning", "replay", "agents", "config"),
    "networks": ("envs", "files", "cli", "training", "replay", "agents", "learning", "config"),
    "learning": ("envs", "files", "cli", "training", "replay", "agents", "config"),
    "replay": ("envs", "cli", "training", "networks", "learning", "agents", "config"),
    "envs": (
        *("cli", "training", "runs", "collecting", "networks", "learning", "replay", "agents", "config"),
        *("recipes", "evaluation", "experiments", "viewing", "api"),
    ),
    "agents": ("cli", "training", "collecting", "replay", "files"),
    "evaluation": ("cli", "training", "runs", "collecting", "replay"),
    "text.py": (*EVERYTHING, "errors", "registry"),
    "runs": ("cli", "experiments", "viewing", "training", "replay"),
    "collecting": ("cli", "experiments", "viewing", "training", "evaluation"),
    "training": ("cli", "experiments"),
    "experiments": ("cli", "viewing"),
    "viewing": ("cli",),
    "testing": ("envs", "files", "cli", "training", "replay", "agents", "config", "recipes"),
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


def test_no_file_is_ever_unpickled():
    talks_to_a_process_of_its_own = {PACKAGE / "envs/workers.py", PACKAGE / "envs/worker.py"}
    for path in PACKAGE.rglob("*.py"):
        if path not in talks_to_a_process_of_its_own:
            assert not {"pickle", "cloudpickle", "joblib"} & set(imports_of(path)), path
        assert "torch.load" not in path.read_text(encoding="utf-8"), path


def test_only_the_registry_imports_a_module_by_a_name_from_outside():
    # All but the registry import only Quantail's own modules by name.
    known = {"trust.py", "registry.py", "__init__.py", "cli/main.py", "cli/doctor.py"}
    for path in PACKAGE.rglob("*.py"):
        if str(path.relative_to(PACKAGE)) not in known:
            text = path.read_text(encoding="utf-8")
            assert "importlib.import_module" not in text, path
            assert "__import__" not in text, path


# Classes of parts, and where they may be told apart: in their own packages.
PARTS = {
    "networks/heads": {one.__name__ for one in HEADS.values()} | {"ReturnHead"},
    "networks/torsos": {one.__name__ for one in TORSOS.values()} | {"Torso"},
    "risk": {one.__name__ for one in MEASURES.values()} | {"Distortion", "Custom"},
    "learning/targets.py": {one.__name__ for one in TARGETS.values()} | {"Target"},
    "learning/optimizers.py": {one.__name__ for one in OPTIMIZERS.values()},
    "agents/exploration.py": {one.__name__ for one in EXPLORATIONS.values()} | {"Exploration"},
    "replay": {one.__name__ for one in SAMPLERS.values()} | {"Sampler"},
    "envs": {one.__name__ for one in FAMILIES.values()} | {"EnvFamily", "HumanPlay", "EnvFromFile"},
    "envs/ale": {"AtariGame", "Ale", "AleConfig", "ConsolePlay"},
    "envs/minatar.py": {"MinAtar", "MinAtarEpisode", "MinAtarPlay"},
    "envs/worlds": {"World", "Worlds"},
}
BASES = {"ReturnHead", "Torso"}  # `testing` may ask whether a class is such a part at all
NAMED = set(NAMING)  # settings that name a part
FAMILY_NAMES = {repr(name) for name in (*FAMILIES, "atari", "world")}
SPELLINGS = {"evaluation/games.py"}  # reads the names of ALE games in published tables, not environments
TEXTS = (ast.Constant, ast.Tuple, ast.List, ast.Set)


def kind_checks(tree):
    """Classes that isinstance or a comparison asks for, and attributes that are compared with a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            yield from classes(ast.walk(node.args[1]))
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            yield from classes(sides)
            if any(isinstance(one, TEXTS) for one in sides):
                yield from (named(one) for one in sides)
            yield from texts(sides)
        if isinstance(node, ast.Match):
            yield from texts(case.pattern for case in node.cases)
            yield named(node.subject)


def named(node):
    """The attribute that is looked at; that of `config.head.name` is `head`."""
    attribute = getattr(node, "attr", "")
    return named(node.value) if attribute == "name" else attribute


def classes(nodes):
    names = (getattr(node, "id", "") or getattr(node, "attr", "") for node in nodes)
    yield from (name for name in names if name[:1].isupper())


def texts(nodes):
    """Texts that something is compared with, in quotation marks."""
    for node in nodes:
        for one in ast.walk(node):
            if isinstance(one, ast.Constant) and isinstance(one.value, str):
                yield repr(one.value)


def test_no_code_outside_a_part_asks_which_part_it_is():
    for path in PACKAGE.rglob("*.py"):
        inside = path.relative_to(PACKAGE).as_posix()
        foreign = {
            name for home, names in PARTS.items() if not inside.startswith(home) for name in names
        }
        if inside.startswith("testing/"):
            foreign -= BASES
        checked = set(kind_checks(ast.parse(path.read_text(encoding="utf-8"))))
        foreign |= NAMED | (FAMILY_NAMES if inside not in SPELLINGS else set())
        assert not checked & foreign, f"{inside} checks {checked & foreign}"


def test_a_check_of_a_kind_is_noticed():
    for code, name in (
        ("isinstance(x, Neutral)", "Neutral"),
        ("isinstance(x, int | ImplicitQuantiles)", "ImplicitQuantiles"),
        ('s.head == "expected"', "head"),
        ('s.head.name == "expected"', "head"),
        ('s.head.name not in ("quantiles", "fractions")', "head"),
        ('s.replay.sampler.name == "prioritized"', "sampler"),
        ('"uniform" != job.config.replay.sampler.name', "sampler"),
        ('s.replay.sampler.name in {"prioritized"}', "sampler"),
        ('match s.replay.sampler.name:\n    case "prioritized": pass', "sampler"),
        ("isinstance(env.unwrapped, AtariGame)", "AtariGame"),
        ("isinstance(env.unwrapped, int | worlds.World)", "World"),
        ('kind == "atari"', "'atari'"),
        ('family.name in ("minatar", "worlds")', "'minatar'"),
        ('match kind:\n    case "ale" | "worlds": pass', "'ale'"),
        ("isinstance(x, replay.PrioritizedSampler)", "PrioritizedSampler"),
        ("type(sampler) is UniformSampler", "UniformSampler"),
        ("sampler_class(s) == replay.PrioritizedSampler", "PrioritizedSampler"),
    ):
        assert name in set(kind_checks(ast.parse(code))), code

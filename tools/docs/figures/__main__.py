"""python -m tools.docs.figures [NAME ...]: draw figures of the docs, by default all of them."""

import argparse
import pkgutil
import time
from importlib import import_module
from pathlib import Path

import tools.docs.figures

IMAGES = Path(__file__).parents[3] / "docs" / "images"


def names() -> list[str]:
    """Return the names of all figures."""
    found = (one.name for one in pkgutil.iter_modules(tools.docs.figures.__path__))
    return [name for name in found if not name.startswith("_")]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.docs.figures", description="Draw the docs' figures."
    )
    parser.add_argument(
        "names", nargs="*", choices=[*names(), []], metavar="NAME", help=", ".join(names())
    )
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the images")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    for name in asked.names or names():
        begin = time.monotonic()
        for dark in (False, True):
            import_module(f"tools.docs.figures.{name}").draw(asked.out, dark)
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()

"""The page of a report: its parts, and the files beside it."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import jinja2
from matplotlib.figure import Figure

from quantail import __version__
from quantail.evaluation.sheets import Sheet
from quantail.files import write_text
from quantail.training.history import Group
from quantail.viewing.style import save_figure, svg_of

GENERATOR = '<meta name="generator" content="quantail report">'


@dataclass
class Picture:
    """A figure on the page, and what it shows in words."""

    name: str
    caption: str
    data: str  # an address that holds the whole picture


@dataclass
class Section:
    """A part of the page."""

    title: str
    text: list[str] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


class Report:
    """What is on the page so far; figures are written to the folder as they are drawn."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self.files: list[str] = []

    def picture(self, name: str, caption: str, figure: Figure) -> Picture:
        save_figure(figure, self.folder / name)
        self.files += [f"{name}.png", f"{name}.svg"]
        data = base64.b64encode(svg_of(figure)).decode()
        return Picture(name, caption, f"data:image/svg+xml;base64,{data}")

    def table(self, name: str, text: str) -> None:
        write_text(self.folder / name, text)
        self.files.append(name)


def shown_files(page: Path) -> set[str]:
    """The files beside a page that it lists, where it is a report and there already."""
    text = page.read_text(encoding="utf-8", errors="replace") if page.exists() else ""
    if GENERATOR not in text:
        return set()
    return set(re.findall(r'<a href="([\w.-]+\.(?:png|svg|csv))"', text))


def render(report: Report, groups: Sequence[Group]) -> str:
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    pages = jinja2.Environment(loader=loader, autoescape=True)
    template = pages.get_template("report.html")
    envs = list(dict.fromkeys(group.env for group in groups))
    return template.render(
        title=", ".join(envs) if len(envs) <= 3 else f"{len(envs)} environments",
        summary=[(group.label, group.env, len(group.runs)) for group in groups],
        sections=report.sections,
        files=report.files,
        version=__version__,
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    )

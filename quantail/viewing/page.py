"""The page of a report: its sections, and the files beside it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from quantail import __version__
from quantail.evaluation.result_tables import ResultTable
from quantail.files import write_text
from quantail.runs.history import Group
from quantail.viewing.style import save_figure, styled, svg_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

GENERATOR = '<meta name="generator" content="quantail report">'


@dataclass
class Picture:
    """A figure on the page, with its caption."""

    name: str
    caption: str
    light: str  # a data URL with the whole picture
    dark: str  # the same for a dark page


@dataclass
class Section:
    """A section of the page."""

    title: str
    text: list[str] = field(default_factory=list)
    tables: list[ResultTable] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)


class Report:
    """The sections of a report; figures and tables are written to the folder as they are added."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sections: list[Section] = []
        self.files: list[str] = []

    def picture(self, name: str, caption: str, draw: Callable[[], Figure]) -> Picture:
        """Draw a figure for light and for dark pages, and save the light one as PNG and SVG."""
        with styled():
            figure = draw()
            save_figure(figure, self.folder / name)
            light = _data_url(figure)
        with styled(dark=True):
            dark = _data_url(draw())
        self.files += [f"{name}.png", f"{name}.svg"]
        return Picture(name, caption, light, dark)

    def table(self, name: str, text: str) -> None:
        """Save a table as a file."""
        write_text(self.folder / name, text)
        self.files.append(name)


def _data_url(figure: Figure) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(svg_of(figure)).decode()}"


def shown_files(page: Path) -> set[str]:
    """Return the files that an existing report lists; empty if the page is no report."""
    text = page.read_text(encoding="utf-8", errors="replace") if page.exists() else ""
    if GENERATOR not in text:
        return set()
    return set(re.findall(r'<a href="([\w.-]+\.(?:png|svg|csv))"', text))


def render(report: Report, groups: Sequence[Group]) -> str:
    """Return the HTML of the report."""
    import jinja2

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

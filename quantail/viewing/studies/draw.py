"""Draw every figure of a study, and write its tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from quantail.experiments.folder import StudyFolder
from quantail.experiments.results import Results, read_results
from quantail.experiments.study import Study
from quantail.experiments.tables import scores_csv, table_csv, tables
from quantail.extras import require_extra
from quantail.files import write_text
from quantail.trust import Trust
from quantail.viewing.studies.aggregate import aggregate
from quantail.viewing.studies.curves import curves
from quantail.viewing.studies.distortions import distortions, measures_of
from quantail.viewing.studies.heatmap import heatmap
from quantail.viewing.studies.violins import violins
from quantail.viewing.style import save_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURES: dict[str, Callable[[Results], Figure]] = {
    "heatmap": heatmap,
    "violins": violins,
    "curves": curves,
    "aggregate": aggregate,
}
WITH_INTERVALS = ("curves", "aggregate")


def require_extras(study: Study) -> None:
    """Raise an error if a package is missing that the figure of a study needs."""
    require_extra("plots", "the figure of a study")
    if study.figure in WITH_INTERVALS and any(one.seeds > 1 for one in study.configs()):
        require_extra("stats", "an interval over seeds")


def draw_study(path: str | Path, trust: Trust = ()) -> list[Path]:
    """Draw every figure of the study at `path` as PNG and SVG, write its tables, and return all paths.

    `trust` lists the modules that may be imported if study.json names them.
    """
    results, folder = read_results(path, trust), StudyFolder(path)
    require_extras(results.study)  # before anything is written
    folder.figures.mkdir(exist_ok=True)
    figures: dict[str, Callable[[], Figure]] = {
        results.study.figure: lambda: FIGURES[results.study.figure](results)
    }
    if measures := measures_of(results):
        figures["distortions"] = lambda: distortions(measures)
    written = []
    with styled():
        for name, draw in figures.items():
            save_figure(draw(), folder.figures / name)
            written += [folder.figures / f"{name}.png", folder.figures / f"{name}.svg"]
    texts = {name: table_csv(table) for name, table in tables(results).items()}
    for name, text in {**texts, "scores": scores_csv(results)}.items():
        write_text(folder.figures / f"{name}.csv", text)
        written.append(folder.figures / f"{name}.csv")
    return written

"""The style of all figures: colours, sizes and axes that suit a paper."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quantail.extras import require_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Theme:
    """The colours of a figure."""

    ground: str  # behind everything
    ink: str  # text, axes and what matters most
    quiet: str  # text and lines that explain
    line: str  # what lies in the background
    shade: str  # filled areas without a series
    warning: str
    series: tuple[str, ...]


# The distances between the colours of series stay as large as possible for readers who see no
# difference between red and green, or between blue and yellow.
LIGHT = Theme(
    ground="#ffffff",
    ink="#1b1f27",
    quiet="#5c6573",
    line="#c3cad3",
    shade="#dbe7f3",
    warning="#b00020",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#222222"),
)
DARK = Theme(
    ground="#14171c",
    ink="#e9ecf1",
    quiet="#a3acba",
    line="#4a525e",
    shade="#26384d",
    warning="#ff8a80",
    series=("#3eb4ff", "#e0590b", "#109a68", "#c48fb6", "#f8b93a", "#bddbfe", "#fbe3dc"),
)
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
SIZE = 10.0  # points, for a figure 374 points wide: about the width of a narrow phone in pixels
SMALL = 9.0  # points: legends and notes
LINE_HEIGHT = 1.35  # of a line of text, in font sizes
ROUND = (1, 2, 2.5, 5, 10)  # multiples between the ticks of steps
RULES: dict[Any, Any] = {
    "font.size": SIZE,
    "axes.titlesize": SIZE,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.handlelength": 1.8,
    "legend.handletextpad": 0.6,
    "legend.columnspacing": 1.4,
    "legend.borderpad": 0.4,
    "legend.labelspacing": 0.35,
    "svg.hashsalt": "quantail",
}
_theme: ContextVar[Theme] = ContextVar("theme", default=LIGHT)


def theme() -> Theme:
    """Return the colours of the figures that are drawn in this context."""
    return _theme.get()


def ink_on(ground: str) -> str:
    """Return black or white, whichever has more contrast on this background colour."""
    parts = [int(ground[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"


def colour(index: int) -> str:
    """Return the colour of the index-th series in a figure."""
    series = theme().series
    return series[index % len(series)]


def line_style(index: int) -> dict[str, Any]:
    """Return the colour and the dashes of the index-th series; the first 28 differ from each other."""
    return {"color": colour(index), "ls": DASHES[index // len(theme().series) % len(DASHES)]}


@contextmanager
def styled(dark: bool = False) -> Iterator[None]:
    """Apply the style to everything that is drawn and saved in this context."""
    require_extra("plots", "a figure")
    import matplotlib as mpl

    chosen = DARK if dark else LIGHT
    colours: dict[Any, Any] = {
        "figure.facecolor": chosen.ground,
        "savefig.facecolor": chosen.ground,
        "axes.facecolor": chosen.ground,
        "text.color": chosen.ink,
        "axes.labelcolor": chosen.ink,
        "axes.edgecolor": chosen.ink,
        "xtick.color": chosen.ink,
        "ytick.color": chosen.ink,
    }
    token = _theme.set(chosen)
    try:
        with mpl.rc_context({**RULES, **colours}):
            yield
    finally:
        _theme.reset(token)


def new_figure(width: float = 5.2, height: float = 3.2) -> Figure:
    """Create a figure; the default size in inches fits a column of text and a phone."""
    require_extra("plots", "a figure")
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def count_axis(axes: Axes, frames_per_step: int, *, bottom: bool = True, top: bool = True) -> None:
    """Show steps on the x axis, and frames above it if they differ; `bottom` and `top` add labels."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=ROUND))
    if bottom:
        axes.set_xlabel("steps")
    if frames_per_step == 1:
        return

    def to_frames(steps: Any) -> Any:
        return steps * frames_per_step

    def to_steps(frames: Any) -> Any:
        return frames / frames_per_step

    frames = axes.secondary_xaxis("top", functions=(to_frames, to_steps))
    frames.xaxis.set_major_formatter(EngFormatter(sep=""))
    frames.xaxis.set_major_locator(MaxNLocator(5, steps=ROUND))
    if top:
        frames.set_xlabel("frames")


def svg_of(figure: Figure) -> bytes:
    """Return the figure as SVG; equal figures give equal bytes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def save_figure(figure: Figure, stem: Path) -> tuple[Path, Path]:
    """Save a figure as PNG and SVG, and return both paths; `stem` may end in .png or .svg."""
    name = stem.stem if stem.suffix.lower() in (".png", ".svg") else stem.name
    png, svg = stem.with_name(f"{name}.png"), stem.with_name(f"{name}.svg")
    figure.savefig(png, dpi=200)
    svg.write_bytes(svg_of(figure))
    return png, svg

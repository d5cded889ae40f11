"""One figure of what an agent expects: the return of every action, as quantile function and density."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from quantail.acting.agent import Risk
from quantail.acting.returns import Returns
from quantail.errors import QuantailError
from quantail.risk import parse_risk
from quantail.viewing.scenes import TAUS, densities
from quantail.viewing.style import colour, new_figure, styled

MOST = 6  # observations in one figure


def draw_returns(
    returns: Returns,
    file: str | Path | None = None,
    *,
    names: Sequence[str] | None = None,
    risk: Risk = "cvar:0.1",
) -> Figure:
    """Draw `agent.returns(observation)`, a row for each observation of a batch; save it if told where.

    Circles are means, diamonds the values under `risk`; the best action under each is in bold.
    """
    measure = parse_risk(risk)
    laws, means, values = returns.quantile(TAUS), returns.mean(), returns.value(measure)
    if laws.ndim == 2:
        laws, means, values = laws[None], means[None], values[None]
    if len(laws) > MOST:
        raise QuantailError(f"a figure takes up to {MOST} observations, not {len(laws)}.")
    count = laws.shape[2]
    labels = list(names) if names is not None else [f"action {number}" for number in range(count)]
    if len(labels) != count:
        raise QuantailError(f"names takes one for each of {count} actions, not {len(labels)}.")
    with styled():
        figure = new_figure(8.0, 0.6 + 2.6 * len(laws))
        rows = figure.subplots(len(laws), 2, squeeze=False)
        for (quantiles, density), law, mean, value in zip(rows, laws, means, values, strict=True):
            low, high = float(law.min()), float(law.max())
            room = 0.1 * max(high - low, 0.1)
            grid = np.linspace(low - room, high + room, 240)
            heights = densities(law.astype(np.float64), grid)
            best = {int(mean.argmax()), int(value.argmax())}
            for action in range(count):
                style = {"color": colour(action), "lw": 2.0 if action in best else 1.0}
                quantiles.plot(TAUS, law[:, action], label=labels[action], **style)
                density.plot(grid, heights[:, action], **style)
                marks = {"color": colour(action), "clip_on": False, "ls": "none", "zorder": 4}
                floor = -0.06 * heights.max()
                for x, y, axes in ((1.05, None, quantiles), (None, floor, density)):
                    for shift, number, shape in ((0.0, mean, "o"), (0.06, value, "D")):
                        at = (x + shift, number[action]) if x else (number[action], y)
                        face = "white" if shape == "o" else colour(action)
                        axes.plot(*at, marker=shape, mfc=face, ms=5, **marks)
            quantiles.set(
                xlim=(0, 1.14), xlabel="τ: from bad luck to good luck", xticks=np.linspace(0, 1, 6)
            )
            quantiles.set_ylabel("discounted return")
            density.set(xlabel="discounted return", yticks=[], ylim=(-0.12 * heights.max(), None))
            density.set_ylabel("density")
            quantiles.set_title(
                f"best by the mean (○) {labels[int(mean.argmax())]}, "
                f"by {measure} (◆) {labels[int(value.argmax())]}"
            )
        handles, texts = rows[0][0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside lower center", ncols=min(count, 6))
        if file is not None:
            figure.savefig(file, dpi=160)
    return figure

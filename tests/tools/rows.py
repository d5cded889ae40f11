"""Rows of finished runs as a queue would write them, with made-up scores."""

import numpy as np

from tools.results.plan import Spec, settings_text
from tools.results.table import CurveRow, RunRow


def finished(spec: Spec, study: str = "tiny", mean: float | None = None, **changes):
    """Return the row and the curve of a run."""
    generator = np.random.default_rng(int(spec.id, 16))
    final = generator.normal(10 + len(spec.agent), 1) if mean is None else mean
    values = {
        "id": spec.id,
        "study": study,
        "game": spec.env,
        "agent": spec.agent,
        "preset": spec.preset,
        "seed": spec.seed,
        "steps": spec.steps,
        "trained": spec.steps,
        "settings": settings_text(spec.settings),
        "protocol": "sticky actions 0.1, 3 actions (minimal), ε 0",
        "commit": "0" * 40,
        "kernels": "torch",
        "torch": "2.13.0+cpu",
        "processor": "a processor",
        "seconds": spec.steps / 500,
        "fingerprint": "f" * 16,
        "mean": float(final),
        "std": 2.0,
        "episodes": spec.episodes,
        "date": "2026-01-01T00:00:00.000+00:00",
    }
    steps = range(0, spec.steps + 1, max(1, spec.steps // 10))
    curve = [
        CurveRow(
            spec.id,
            at,
            "agent" if at else "random",
            10,
            float(final * at / spec.steps + generator.normal(1, 0.5)),
            1.0,
        )
        for at in steps
    ]
    return RunRow(**values | changes), curve

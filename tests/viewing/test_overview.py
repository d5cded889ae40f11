import numpy as np
from PIL import Image

import quantail
from quantail.viewing import draw_overview
from tests.helpers.runs import QUICK


def test_the_overview_of_a_run_is_drawn(tmp_path):
    quantail.train(
        "MinAtar/Breakout-v1", out=tmp_path / "run", steps=200, **QUICK["MinAtar/Breakout-v1"]
    )
    draw_overview(tmp_path / "run", tmp_path / "run.png")
    picture = np.asarray(Image.open(tmp_path / "run.png").convert("L"))
    assert picture.shape[1] > 1000
    left, right = np.array_split(picture, 2, axis=1)
    assert (left < 200).sum() > 1000
    assert (right < 200).sum() > 1000

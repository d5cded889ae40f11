"""Runs with changed files and correct checksums."""

import shutil

import numpy as np
import pytest

from tests.helpers.runs import quantail
from tests.helpers.tampering import put_tensor


@pytest.mark.parametrize("shape", [(), (0,)])
def test_optimizer_moments_of_a_wrong_shape_cause_an_error_and_no_crash(cartpoles, tmp_path, shape):
    run = tmp_path / "run"
    shutil.copytree(cartpoles / "iqn-0", run)
    put_tensor(run, "learner", "optimizer.torso.layers.1.weight.exp_avg", np.zeros(shape, np.float32))
    ended = quantail("resume", run, "--steps", 260)
    assert ended.returncode == 2, ended.stderr
    assert "optimizer.torso.layers.1.weight.exp_avg is float32 of shape" in ended.stderr
    assert "Traceback" not in ended.stderr

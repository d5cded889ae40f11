"""Shared by all tests."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _threads():
    """Leave the number of threads as it was: a run sets its own."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)

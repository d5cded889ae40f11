from dataclasses import fields, replace

import pytest
import torch

from tests.helpers.learners import batch

META = torch.device("meta")  # a device that every machine has


@pytest.mark.parametrize("masked", [False, True])
def test_moving_a_batch_to_a_device_moves_every_part_and_keeps_masks_that_are_not_there(masked):
    data = batch(4, actions=3)
    if masked:
        data = replace(data, masks=torch.ones(4, 3) > 0, next_masks=torch.eye(4, 3) > 0)
    moved = data.to(META)
    for field in fields(data):
        before, after = getattr(data, field.name), getattr(moved, field.name)
        if before is None:
            assert after is None, field.name
            continue
        assert after.device == META, field.name
        assert (after.shape, after.dtype) == (before.shape, before.dtype), field.name
    assert (moved.masks is not None) == (moved.next_masks is not None) == masked


def test_a_batch_that_is_on_the_device_already_is_not_copied():
    data = batch()
    assert data.to(torch.device("cpu")) is data

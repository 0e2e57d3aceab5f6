from typing import Any

import numpy as np
import torch
from torch.profiler import profile

import hookviz
from hookviz.capturing.image_shards import image_shards
from hookviz.capturing.vector_work import VectorWork
from hookviz.types import Model
from tests.networks import random_input


def test_all_layers_come_of_one_pass_which_ends_at_the_last_of_them(tiny: Model) -> None:
    work = VectorWork(tiny, ("relu", "conv1"), "mean", None)
    images: dict[str, Any] = {"a": random_input(0), "b": torch.ones(1, 2, 16, 16)}
    (shard,) = image_shards(images.items(), 16)
    outcomes = work(shard, lambda done, left_out: None)
    assert work.names(shard) == ("a", "b")
    assert isinstance(outcomes["b"], hookviz.HookVizError)
    assert isinstance(outcomes["a"], tuple)
    with torch.no_grad():
        first = tiny.network.get_submodule("conv1")(random_input(0))
    for found, expected in zip(outcomes["a"], (first.relu(), first), strict=True):
        np.testing.assert_allclose(found, expected.mean((2, 3))[0].numpy(), rtol=1e-5, atol=1e-6)

    (shard,) = image_shards([("c", random_input(1))], 16)  # of a shape that has been traced
    work = VectorWork(tiny, ("conv2", "conv1"), "mean", None)
    with profile() as run:
        work(shard, lambda done, left_out: None)
    counts = {event.key: event.count for event in run.key_averages()}
    assert counts["aten::conv2d"] == 2  # and not 4
    assert "aten::linear" not in counts

"""A shard's work as an engine sends it to another process, and its tally as it comes back."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from hookviz.atlas.plan import Plan, channel_table, sources, table_by
from hookviz.atlas.shard_work import (
    BatchedPass,
    NotByImageError,
    ShardWork,
    TallyShard,
    queue_reductions,
    read_queued,
    reduced,
)
from hookviz.atlas.tally import SUMS, LayerBatch, Tally
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import Model
from tests.atlas.folders import Folding, Mixing, save_folder
from tests.networks import all_hooks, as_model, random_input, seeded
from tests.odd_batches import (
    REMEMBERING,
    BatchMaximum,
    BatchNormed,
    BatchSorted,
    BatchUnique,
    Odd,
)


def passes_of(model: Model) -> BatchedPass:
    return BatchedPass.of(model, channel_table(layer_trace(model, (3, 16, 16))))


def nowhere(passes: BatchedPass) -> np.ndarray:
    return np.full(passes.table.channels, -np.inf, np.float32)


def queued(maps: Tensor, exceeding: np.ndarray) -> LayerBatch:
    """What a GPU computes, here on the CPU."""
    (layer,) = read_queued([queue_reductions(maps)], exceeding)
    return layer


@pytest.mark.parametrize("reduce", [reduced, queued])
@pytest.mark.parametrize("images", [1, 2, 7])
@pytest.mark.parametrize("memory", ["rows of channels", "channels last", "tokens", "no first row"])
def test_a_layer_is_reduced_to_what_a_loop_over_its_maps_finds(
    images: int, memory: str, reduce: Callable[[Tensor, np.ndarray], LayerBatch]
) -> None:
    """Few different values, so that most largest ones are there several times."""
    generator = torch.Generator().manual_seed(images)
    maps = torch.randint(-3, 4, (images, 5, 6, 4), generator=generator).float()
    maps[0, 1, 2, 3], maps[-1, 2, 0, 0], maps[0, 3] = torch.nan, torch.inf, torch.nan
    maps[-1, 4] = -torch.inf
    if memory == "channels last":
        maps = maps.contiguous(memory_format=torch.channels_last)
    elif memory == "tokens":  # behind a prefix that is cut off, channels last
        tokens = torch.cat([torch.zeros(images, 2, 5), maps.flatten(2).transpose(1, 2)], 1)
        maps = tokens[:, 2:].reshape(images, 6, 4, 5).movedim(3, 1)
    elif memory == "no first row":
        maps = torch.cat([torch.zeros(images, 5, 1, 4), maps], 2)[:, :, 1:]
    exceeding = np.array([2, -np.inf, -np.inf, -np.inf, -np.inf], np.float32)
    layer = reduce(maps, exceeding)
    samples: list[list[float]] = [[] for _ in range(5)]
    not_finite = [0] * 5
    for image, channel in np.ndindex(images, 5):
        found, cell, total = -np.inf, [-1, -1], 0.0
        for row, column in np.ndindex(6, 4):
            value = float(maps[image, channel, row, column])
            total += value if np.isfinite(value) else 0
            not_finite[channel] += not np.isfinite(value)
            if value > found:
                found, cell = value, [row, column]
            if row in (1, 3, 5) and column in (0, 2, 3):
                samples[channel].append(-np.inf if np.isnan(value) else value)
        assert layer.best[image, channel] == found
        assert layer.sums[image, channel] == total
        wanted = found > exceeding[channel]
        assert layer.cells[image, channel].tolist() == (cell if wanted else [-1, -1])
    assert layer.not_finite.tolist() == not_finite
    assert layer.sample.tolist() == samples


def test_images_that_are_mixed_are_noticed() -> None:
    images = torch.cat([random_input(seed) for seed in range(2)])
    assert not passes_of(as_model(seeded(Mixing))).keeps_images_apart(images)
    folding = passes_of(as_model(seeded(Folding)))
    assert not folding.keeps_images_apart(images)
    with pytest.raises(NotByImageError, match="conv1 put out 1×4×32×16 for 2 images"):
        folding.run(images, nowhere(folding))
    assert all_hooks(folding.model) == 0


def test_lines_of_a_convolution_along_channels_are_one_row(tiny: Model) -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)
            self.line = nn.Conv1d(1, 2, 3, padding=1)

        def forward(self, images: Tensor) -> Tensor:
            maps = self.conv(images)
            return torch.as_tensor(self.line(maps.mean((2, 3))[:, None]))

    passes = passes_of(as_model(seeded(Attention)))
    line = passes.table.by_address["line"]
    assert (line.cells, line.channels, line.dimensions) == ((1, 4), 2, 2)
    conv, lines = passes.run(torch.cat([random_input(0), random_input(1)]), nowhere(passes))
    assert (lines.cells[..., 0] == 0).all()
    assert conv.best.shape == (2, 4)


@pytest.mark.parametrize("kind", [BatchMaximum, BatchNormed, BatchSorted, BatchUnique])
def test_the_batchs_own_numbers_are_noticed_wherever_they_come_from(kind: type[Odd]) -> None:
    """Of a scale by the largest value all images but the smaller ones show nothing."""
    images = torch.cat([random_input(0), 0.4 * random_input(1), 0.5 * random_input(2)])
    assert not passes_of(as_model(seeded(kind))).keeps_images_apart(images)


@pytest.mark.parametrize("kind", REMEMBERING)
@pytest.mark.parametrize("dtype", [None, torch.float64])
@torch.no_grad()
def test_each_pass_is_a_fresh_networks(kind: type[Odd], dtype: torch.dtype | None) -> None:
    network = seeded(kind)
    model = as_model(network)
    table = channel_table(layer_trace(model, (3, 16, 16)))
    passes = BatchedPass.of(model, table, dtype)
    for seed in (0, 1, 0):
        image = random_input(seed)
        fresh = copy.deepcopy(network)
        expected = fresh.conv2(fresh.between(fresh.conv1(image).relu())).amax((2, 3))
        batch = passes.run(image, nowhere(passes))[-1]
        np.testing.assert_allclose(batch.best, expected, rtol=1e-5)


def nobody(_done: float, _left_out: int) -> None: ...


def test_work_that_was_sent_gives_the_tally_that_it_gives_here(tiny: Model, tmp_path: Path) -> None:
    for number, name in enumerate(("cats", "dogs")):
        save_folder(tmp_path / name, 6, first=6 * number)
    (tmp_path / "cats" / "002.png").write_bytes(b"no image")
    listed = sources(tiny, tmp_path)
    plan = Plan(tiny, listed, table_by(tiny, listed[0].image, None), top=3, batch=4)
    work = ShardWork(plan)
    sent = pickle.loads(pickle.dumps(work))  # noqa: S301 - ours
    joined = [Tally.empty(plan.table.channels, 3, 2) for _ in range(2)]
    for indices in (range(8), range(8, 12)):
        shard = TallyShard.of(plan, indices, joined[0].top.least.copy())
        joined[0].merge(work(shard, nobody))
        tally = sent(pickle.loads(pickle.dumps(shard)), nobody)  # noqa: S301 - ours
        joined[1].merge(pickle.loads(pickle.dumps(tally)))  # noqa: S301 - ours
    here, back = joined
    for name in (*SUMS, "tallied", "repeated", "left_out", "left_out_count", "digests"):
        np.testing.assert_equal(getattr(back, name), getattr(here, name))
    for name in ("values", "indices", "cells"):
        np.testing.assert_array_equal(getattr(back.top, name), getattr(here.top, name))
    assert (here.tallied, list(here.left_out)) == (11, [2])

"""A shard of the images turned into its tally, and the engine that goes through the shards.

This is the seam for another engine: `ShardWork` needs a plan and nothing else, tallies of shards
are joined by `Tally.merge`, and an engine hands them over in the order of the shards.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.atlas import reading_ahead
from hookviz.atlas.batched_pass import BatchedPass, NotByImageError
from hookviz.atlas.plan import DTYPES, Plan
from hookviz.atlas.reading_ahead import Ready, Unreadable
from hookviz.atlas.tally import LayerBatch, Tally
from hookviz.errors import HookVizError, ModelError
from hookviz.hooking.conduct import only_computes

Step = Callable[[int, int], object]
"""Told that so many more images are done, and how many of them were left out."""


class Engine(Protocol):
    """Goes through shards and hands over the tally of each, in the order of the shards."""

    def __call__(self, work: "ShardWork", shards: Sequence[range], step: Step) -> Iterator[Tally]:
        """The tallies of `shards`, each by `work`."""
        ...


def in_this_process(work: "ShardWork", shards: Sequence[range], step: Step) -> Iterator[Tally]:
    """The tallies of shards, one after another."""
    for shard in shards:
        yield work(shard, step)


class ShardWork:
    """Makes the tally of any shard of a plan; the same for the same shard, wherever it runs."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._passes = BatchedPass.of(plan.model, plan.table, DTYPES[plan.dtype])
        self.floor: NDArray[np.float32] | None = None
        """For each channel a value that images of later shards have to exceed, where one is known.

        It saves looking for cells that the merged tally would drop; the sum of all tallies is the
        same without it.
        """
        self._one_by_one = plan.batch == 1 or not only_computes(plan.model.network)
        self._probed = False

    def __call__(self, shard: range, step: Step) -> Tally:
        """The tally of the images at the places of `shard`.

        An image that can't be read, or that the network can't take, is left out.

        Args:
            shard: from `Plan.shards`.
            step: told how far it is, after every batch; what it raises ends the work.
        """
        plan = self.plan
        tally = Tally.empty(plan.table.channels, plan.top, len(plan.classes))
        images = [source.image for source in plan.sources[shard.start : shard.stop]]
        local = range(len(images))
        for together in reading_ahead.batches(plan.model, images, local, plan.batch, plan.size):
            before = tally.left_out_count
            for image in together:
                if isinstance(image, Unreadable):
                    tally.leave_out(shard[image.place], image.reason)
            ready = [image for image in together if isinstance(image, Ready)]
            for _, group in groupby(ready, key=lambda image: image.tensor.shape):  # kept in order
                self._add(tally, shard, list(group))
            step(len(together), tally.left_out_count - before)
        return tally

    def _add(self, tally: Tally, shard: range, group: list[Ready]) -> None:
        """Take in images of one shape: in one pass, or one by one where that is not the same."""
        if len(group) > 1 and not self._one_by_one:
            images = torch.cat([image.tensor for image in group])
            try:
                if not self._probed:
                    self._one_by_one = not self._passes.keeps_images_apart(images)
                    self._probed = True
                if not self._one_by_one:
                    self._take(tally, shard, group, self._passes.run(images, self._least(tally)))
                    return
            except NotByImageError:
                self._one_by_one = True
            except ModelError:
                pass  # each by itself: at most the one that fails is left out, with the reason
        for image in group:
            try:
                layers = self._passes.run(image.tensor, self._least(tally))
            except HookVizError as error:
                tally.leave_out(shard[image.place], str(error))
            else:
                self._take(tally, shard, [image], layers)

    def _least(self, tally: Tally) -> NDArray[np.float32]:
        """The value that each channel's has to exceed."""
        least = tally.top.least
        return least if self.floor is None else np.maximum(least, self.floor)

    def _take(
        self, tally: Tally, shard: range, group: list[Ready], layers: tuple[LayerBatch, ...]
    ) -> None:
        plan = self.plan
        places = [shard[image.place] for image in group]
        classes = [plan.class_numbers.get(plan.sources[place].category, -1) for place in places]
        tally.add(layers, places, [image.digest for image in group], classes)

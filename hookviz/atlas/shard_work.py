"""Turn a shard of the images into its tally, in whatever process an engine runs it.

A shard brings its images, and the work knows the model alone: a million images are not sent to
every worker. Tallies of shards are joined by `Tally.merge`, in the order of the shards.
"""

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.atlas import reading_ahead
from hookviz.atlas.batched_pass import BatchedPass, NotByImageError
from hookviz.atlas.plan import DTYPES, Plan
from hookviz.atlas.reading_ahead import ReadyImage, UnreadableImage
from hookviz.atlas.tally import LayerBatch, Tally
from hookviz.capturing.image_shards import needs_of
from hookviz.capturing.layer_trace import layer_trace
from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import HookVizError, ModelError


@dataclass(frozen=True, eq=False, slots=True)
class TallyShard:
    """Consecutive images that are tallied together.

    Attributes:
        indices: of the images among all.
        names: what they are called.
        images: what `prepare` takes.
        classes: of each image; -1 for none.
        floor: for each channel a value that later images have to exceed, where one is known. It
            saves looking for cells that the merged tally would drop; the sum of all tallies is the
            same without it.
    """

    indices: range
    names: tuple[str, ...] = field(repr=False)
    images: tuple[Any, ...] = field(repr=False)
    classes: tuple[int, ...] = field(repr=False)
    floor: NDArray[np.float32] = field(repr=False)

    @classmethod
    def of(cls, plan: Plan, indices: range, floor: NDArray[np.float32]) -> "TallyShard":
        """Take the shard of a plan at `indices`."""
        sources = plan.sources[indices.start : indices.stop]
        return cls(
            indices,
            tuple(source.name for source in sources),
            tuple(source.image for source in sources),
            tuple(plan.class_numbers.get(source.category, -1) for source in sources),
            floor,
        )


class ShardWork:
    """Callable that tallies any shard of a plan, with the same result wherever it runs."""

    def __init__(self, plan: Plan) -> None:
        self.needs: Needs = needs_of([plan.model], (source.image for source in plan.sources))
        self._model, self._table, self._size = plan.model, plan.table, plan.size
        self._top, self._batch, self._dtype = plan.top, plan.batch, plan.dtype
        self._classes = len(plan.classes)
        # what follows is made where the work is done
        self._batched_pass: BatchedPass | None = None
        self._one_by_one = plan.batch == 1
        self._probed = False

    def names(self, shard: TallyShard) -> tuple[str, ...]:
        """Return the names of a shard's images."""
        return shard.names

    def __call__(self, shard: TallyShard, report: ReportImages) -> Tally:
        """Tally the images of `shard`.

        An image that can't be read, or that the network can't take, is left out.

        Args:
            shard: of the plan.
            report: called with how far it is after every batch; what it raises ends the work.
        """
        tally = Tally.empty(self._table.channels, self._top, self._classes, shard.floor)
        local = range(len(shard.images))
        done = 0
        for together in reading_ahead.batches(
            self._model, shard.images, local, self._batch, self._size
        ):
            for image in together:
                if isinstance(image, UnreadableImage):
                    tally.leave_out(shard.indices[image.index], image.reason)
            ready = [image for image in together if isinstance(image, ReadyImage)]
            for _, group in groupby(ready, key=lambda image: image.tensor.shape):  # kept in order
                self._add(tally, shard, list(group))
            done += len(together)
            report(done, tally.left_out_count)
        return tally

    @property
    def _passes(self) -> BatchedPass:
        if self._batched_pass is None:
            self._batched_pass = BatchedPass.of(self._model, self._table, DTYPES[self._dtype])
        return self._batched_pass

    def _add(self, tally: Tally, shard: TallyShard, group: list[ReadyImage]) -> None:
        """Tally images of one shape: in one pass, or one by one where that is not the same."""
        if len(group) > 1 and not self._one_by_one:
            images = torch.cat([image.tensor for image in group])
            try:
                if not self._probed:
                    trace = layer_trace(self._model, tuple(images.shape[1:]))
                    self._one_by_one = not (
                        trace.is_static and self._passes.keeps_images_apart(images)
                    )
                    self._probed = True
                if not self._one_by_one:
                    self._take(tally, shard, group, self._passes.run(images, tally.top.least))
                    return
            except NotByImageError:
                self._one_by_one = True
            except ModelError:
                pass  # each by itself: at most the one that fails is left out, with the reason
        for image in group:
            try:
                layers = self._passes.run(image.tensor, tally.top.least)
            except HookVizError as error:
                tally.leave_out(shard.indices[image.index], str(error))
            else:
                self._take(tally, shard, [image], layers)

    def _take(
        self,
        tally: Tally,
        shard: TallyShard,
        group: list[ReadyImage],
        layers: tuple[LayerBatch, ...],
    ) -> None:
        indices = [shard.indices[image.index] for image in group]
        classes = [shard.classes[image.index] for image in group]
        tally.add(layers, indices, [image.digest for image in group], classes)

"""Turn a shard of the images into its tally, in whatever process an engine runs it.

A shard brings its images, and the work knows the model alone: a million images are not sent to
every worker. Tallies of shards are joined by `Tally.merge`, in the order of the shards.

A `BatchedPass` runs several images through a network at once. Every layer is reduced in its hook,
so that memory is that of the bare pass. On a CPU a map's cell is looked for only where its value
exceeds the channel's floor. On a GPU the reductions of all layers are queued, and read once the
pass has ended: no layer waits for the one before it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from hookviz.atlas.plan import DTYPES, ChannelTable, LayerChannels, Plan
from hookviz.atlas.tally import LayerBatch, Tally
from hookviz.capturing.image_shards import ReadyImage, UnreadableImage, needs_of, read_batches
from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.storage import SAME, Storage
from hookviz.engines.engine import Needs, ReportImages
from hookviz.errors import HookVizError, ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.network_state import is_shared, share
from hookviz.models.derived_models import copied_network
from hookviz.types import ActivationKey, Model
from hookviz.wording import times

_SAMPLED = 3  # rows and columns of each map whose cells are in the histogram
_FAR = 1e-3, 5e-2  # share of a layer's largest value: in float32, in half precisions


class NotByImageError(ModelError):
    """A layer's output does not have one part for each image of a batch."""


@dataclass(frozen=True, eq=False)
class BatchedPass:
    """Forward passes of a model over several images at once.

    Attributes:
        model: whose network runs.
        table: its channels.
        dtype: in which the network computes; None for its own.
    """

    model: Model
    table: ChannelTable
    dtype: torch.dtype | None = None

    @classmethod
    def of(
        cls, model: Model, table: ChannelTable, dtype: torch.dtype | None = None
    ) -> "BatchedPass":
        """Prepare passes in the network's own precision, or on a copy of it in another one.

        Raises:
            ModelError: the network can't be copied.
        """
        if dtype is not None:
            network = copied_network(model).to(dtype)
            if is_shared(model.network):
                share(network)
            model = replace(model, network=network, replaced={})
        return cls(model, table, dtype)

    def run(self, images: Tensor, exceeding: NDArray[np.float32]) -> tuple[LayerBatch, ...]:
        """Run the images, and return what each layer made of them.

        A layer that the pass does not run is left out. Several images go through with their
        channels last in memory, which is faster on CPUs; one alone as `capture` has it, with
        exactly the values of `capture`.

        Args:
            images: ``(N, C, H, W)``.
            exceeding: for each of all channels, the value above which its cell is wanted.

        Raises:
            NotByImageError: a layer puts out something else than a part for each image.
            ModelError: the network can't take the images.
        """
        by_address: dict[str, LayerBatch | _QueuedBatch] = {}
        refused: list[NotByImageError] = []
        if len(images) > 1 and images.ndim == 4:
            images = images.contiguous(memory_format=torch.channels_last)

        def see(call: hooks.Call) -> None:
            for path, tensor in hooks.tensors_in(call.output):
                layer = self.table.by_address.get(str(ActivationKey(call.layer, call.index, path)))
                if layer is None:
                    continue
                try:
                    maps = _maps(tensor, layer, len(images))
                except NotByImageError as error:
                    refused.append(error)
                    raise hooks.StopForward from error
                by_address[layer.address] = (
                    reduced(maps, exceeding[layer.rows], layer.first)
                    if maps.device.type == "cpu" or not maps.numel()
                    else queue_reductions(maps, layer.first)
                )

        names = {layer.name for layer in self.table.layers}
        with private_replica(self.model) as replica, hooks.observe(replica, names, see):
            forward_pass(self.model, replica, images)
        if refused:
            raise refused[0]
        return read_queued(by_address.values(), exceeding)

    def keeps_images_apart(self, images: Tensor) -> bool:
        """Return whether a batch gives its first and last image what passes of their own give them.

        The last is half of the first here: most of what a network takes over a whole batch, such as
        its largest value, is another number for that one alone. To rounding: 0.1 % of the largest
        value of the layer, 5 % in half precisions.
        """
        nowhere = np.full(self.table.channels, np.inf, np.float32)
        images = torch.cat([images[:-1], images[:1] / 2])
        try:
            together = self.run(images, nowhere)
        except NotByImageError:
            return False
        return all(
            self._are_same(self.run(images[[index]], nowhere), together, index)
            for index in (0, len(images) - 1)
        )

    def _are_same(
        self, alone: tuple[LayerBatch, ...], together: tuple[LayerBatch, ...], index: int
    ) -> bool:
        """Return whether the image at `index` of a batch has the maxima that it has alone."""
        far = _FAR[self.dtype is not None]
        if [layer.first for layer in alone] != [layer.first for layer in together]:
            return False
        for single, several in zip(alone, together, strict=True):
            one, other = single.best[0], several.best[index]
            finite = np.isfinite(one)
            scale = np.abs(one[finite]).max(initial=0)
            if not np.allclose(one[finite], other[finite], rtol=0, atol=far * scale):
                return False
        return True


def _maps(tensor: Tensor, layer: LayerChannels, images: int) -> Tensor:
    """Bring a layer's output to ``(N, C, rows, columns)``."""
    values = tensor.detach()
    if layer.layout.last:
        values = layer.layout.batch_maps(values)
    if values.ndim == layer.dimensions and images == 1:
        values = values[None]
    if values.ndim == 3 and layer.dimensions == 2:
        values = values[:, :, None]
    if values.ndim != 4 or values.shape[:2] != (images, layer.channels) or values.is_complex():
        raise NotByImageError(
            f"{layer.address} put out {times(tensor.shape)} for {images} images, and not "
            f"{layer.channels} channels for each."
        )
    return values


def reduced(maps: Tensor, exceeding: NDArray[np.float32], first: int = 0) -> LayerBatch:
    """Reduce maps, ``(N, C, rows, columns)``, to their maxima, sums and samples.

    Args:
        maps: of any float type, on the CPU.
        exceeding: the value above which a maximum's cell is wanted, ``(C,)``.
        first: row of the first of the channels among all.
    """
    images, channels, rows, columns = maps.shape
    if not maps.numel():
        nothing = np.zeros((images, channels))
        return LayerBatch(
            first,
            np.full((images, channels), -np.inf, np.float32),
            np.full((images, channels, 2), -1, np.int32),
            nothing,
            0,
            np.zeros(channels, np.int64),
            np.zeros((channels, 0), np.float32),
        )
    best, cells_of = _largest(maps)
    sums = maps.sum((2, 3), dtype=torch.float32)
    not_finite = torch.zeros(channels, dtype=torch.int64)
    if not sums.isfinite().all():  # NaN or infinity is somewhere in there, or the sum is too large
        finite = maps.isfinite()
        not_finite = (~finite).sum((0, 2, 3))
        sums = torch.where(finite, maps, 0).sum((2, 3), dtype=torch.float64)
        maps = torch.where(maps.isnan(), -torch.inf, maps)
        best, cells_of = _largest(maps)
    wanted = best > torch.from_numpy(exceeding)
    cells = np.full((images, channels, 2), -1, np.int32)
    image, channel = wanted.nonzero(as_tuple=True)
    if len(image):
        at = image.numpy(), channel.numpy()
        cells[at] = _first_cells(maps, cells_of, image, channel).numpy()
    return LayerBatch(
        first,
        best.numpy(),
        cells,
        sums.double().numpy(),
        rows * columns,
        not_finite.numpy(),
        _sample(maps).transpose(0, 1).reshape(channels, -1).numpy(),
    )


class _QueuedBatch(NamedTuple):
    """Reductions of one layer for N images on a GPU, which need not be computed yet.

    Attributes:
        first: row of its first channel among all.
        columns: of a map.
        numbers: how many values each map has.
        best: largest value of each map, float32 ``(N, C)``.
        cells: the first cell that has it, counted row by row, ``(N, C)``.
        sums: of finite values, ``(N, C)``.
        not_finite: number of NaNs and infinite values, ``(C,)``.
        sample: as `LayerBatch.sample`.
    """

    first: int
    columns: int
    numbers: int
    best: Tensor
    cells: Tensor
    sums: Tensor
    not_finite: Tensor
    sample: Tensor


def queue_reductions(maps: Tensor, first: int = 0) -> _QueuedBatch:
    """Reduce maps, ``(N, C, rows, columns)``, as `reduced` does, without a wait for the device."""
    finite = maps.isfinite()
    exact = torch.float32 if maps.device.type == "mps" else torch.float64  # the most that it has
    sums = torch.where(finite, maps, 0).sum((2, 3), dtype=exact)
    maps = torch.where(maps.isnan(), -torch.inf, maps)
    best, cells = maps.flatten(2).max(2)  # the first of equal ones
    return _QueuedBatch(
        first,
        maps.shape[3],
        maps.shape[2] * maps.shape[3],
        best.float(),
        cells,
        sums,
        (~finite).sum((0, 2, 3)),
        _sample(maps).transpose(0, 1).reshape(maps.shape[1], -1),
    )


def read_queued(
    batches: Iterable[LayerBatch | _QueuedBatch], exceeding: NDArray[np.float32]
) -> tuple[LayerBatch, ...]:
    """Copy queued reductions to the host, all at once, and leave the others as they are.

    Args:
        batches: of the layers of a pass.
        exceeding: for each of all channels, the value above which a maximum's cell is wanted.
    """
    batches = list(batches)
    queued = [each for each in batches if isinstance(each, _QueuedBatch)]
    host = iter(Storage(dtype=SAME).keep(tensor for each in queued for tensor in each[3:]))

    def as_read(batch: LayerBatch | _QueuedBatch) -> LayerBatch:
        if isinstance(batch, LayerBatch):
            return batch
        best, flat, sums, not_finite, sample = (next(host).numpy() for _ in batch[3:])
        cells = np.stack(np.divmod(flat, batch.columns), -1).astype(np.int32)
        rows = slice(batch.first, batch.first + best.shape[1])
        cells[best <= exceeding[rows]] = -1
        return LayerBatch(
            batch.first,
            best,
            cells,
            sums.astype(np.float64),
            batch.numbers,
            not_finite,
            sample,
        )

    return tuple(map(as_read, batches))


def _largest(maps: Tensor) -> tuple[Tensor, Tensor | None]:
    """Return each map's largest value, float32 ``(N, C)``, and the first cell that has it.

    The cells, ``(N, C)``, are counted row by row; None where nothing but another walk through the
    maps would tell. With channels last in memory a pooling over the whole map tells both as fast as
    memory can be read, where `amax` takes up to ten times as long, by how many channels there are.
    """
    if maps.stride(1) != 1 or not maps.is_floating_point():
        return maps.amax((2, 3)).float(), None
    best, cells = F.max_pool2d(maps, maps.shape[2:], return_indices=True)
    return best.flatten(1).float(), cells.flatten(1)


def _first_cells(maps: Tensor, cells: Tensor | None, image: Tensor, channel: Tensor) -> Tensor:
    """Find the first cell, row by row, of the largest value of M maps, ``(M, 2)``."""
    # `argmax` gives the first of equal ones.
    flat = maps[image, channel].flatten(1).argmax(1) if cells is None else cells[image, channel]
    return torch.stack([flat // maps.shape[3], flat % maps.shape[3]], 1)


def _sample(maps: Tensor) -> Tensor:
    """Take up to 9 cells of each map, float32 ``(N, C, rows, columns)``."""
    rows, columns = (_spread(length, maps.device) for length in maps.shape[2:])
    if maps.stride(1) != 1:
        return maps[:, :, rows[:, None], columns].float()
    in_order = maps.movedim(1, 3).index_select(1, rows).index_select(2, columns)
    return in_order.movedim(3, 1).float()


@lru_cache(256)
def _spread(length: int, device: torch.device) -> Tensor:
    """Spread up to `_SAMPLED` indices over `length`, each in the middle of an equal share."""
    indices = {(2 * part + 1) * length // (2 * _SAMPLED) for part in range(_SAMPLED)}
    return torch.tensor(sorted(indices), device=device)


@dataclass(frozen=True, eq=False, slots=True)
class TallyShard:
    """Consecutive images that are tallied together.

    Attributes:
        indices: of the images among all.
        names: what they are called.
        images: what `prepare_input` takes.
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
        for together in read_batches(self._model, shard.images, local, self._batch, self._size):
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

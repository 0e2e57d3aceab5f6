"""Compute the mean of each channel of two models for many images.

Several images go through in one pass where single passes give the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing import engine as capturing
from hookviz.capturing import inputs
from hookviz.capturing.feature_vectors import vector
from hookviz.capturing.image_shards import ImageShard, image_shards, needs_of, outcome_of_each
from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.engines.engine import Engine, Needs, ReportImages, in_this_process
from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.types import UNKNOWN, VECTORS, ActivationKey, Layout, Model, ModelInput, Progress

_SHARD = 16  # images that a worker of an engine takes at once
_TOGETHER = 4  # images in one pass; what 8 of them make is more than a processor's caches hold

Means = Mapping[str, NDArray[np.float32]]
"""By written address: of one image, ``(C,)``; of all that went through, ``(N, C)``."""

_FAR = 1e-5  # of a layer's largest mean: rounding is less, what another image changes is more


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """One of two models, with the layers to look at and how its inputs are prepared.

    Attributes:
        model: from `load_model` or `wrap`.
        layers: their names; None for every conv layer.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
    """

    model: Model
    layers: tuple[str, ...] | None
    size: int | None
    whole: bool


@dataclass(frozen=True, eq=False, slots=True)
class BothMeans:
    """Channel means of both models over their maps, a row for each image.

    Attributes:
        a, b: float32 ``(N, C)`` by written address, in order of execution.
        names: of the images that went through both, ``(N,)``.
        failed: why images were left out, by their names.
    """

    a: Means
    b: Means
    names: tuple[str, ...]
    failed: Mapping[str, str]


@dataclass(frozen=True, eq=False, slots=True)
class MeansWork:
    """Work for an engine: compute the channel means of both models for each image of a shard.

    Attributes:
        a: one model; `b` may be the same object, and then an image goes through once.
        b: another one.
        needs: what it needs where it runs.
    """

    a: Side
    b: Side
    needs: Needs = field(default_factory=Needs)
    _apart: dict[Side, bool] = field(default_factory=dict, repr=False)  # which take batches

    def names(self, shard: ImageShard) -> tuple[str, ...]:
        """Return the names of the images of a shard."""
        return shard.names

    def __call__(
        self, shard: ImageShard, report: ReportImages
    ) -> dict[str, tuple[Means, Means] | HookVizError]:
        """Return by image name the means of A and of B, or the error that kept the image out."""
        ready: Sequence[tuple[Means, Means]] = ()

        def means(place: int, image: Any, reporter: ProgressReporter) -> tuple[Means, Means]:
            nonlocal ready
            if place % _TOGETHER == 0:
                ready = self._together(shard.images[place : place + _TOGETHER], reporter)
            if ready:
                return ready[place % _TOGETHER]
            return _means_of_both(self.a, self.b, image, reporter)

        return outcome_of_each(shard, report, means, of_all=(UnknownNameError, SettingError))

    def _together(
        self, images: Sequence[Any], reporter: ProgressReporter
    ) -> Sequence[tuple[Means, Means]]:
        """Return the means of images that share a pass; nothing where each has to go alone."""
        if len(images) < 2 or not all(self._apart.values()):
            return ()
        try:
            decoded = [_decoded(self.a, self.b, image) for image in images]
            first = self._of_a_pass(self.a, decoded, reporter)
            second = self._of_a_pass(self.b, decoded, reporter) if self.a is not self.b else first
        except HookVizError as error:
            if reporter.was_ended_by(error):
                raise
            return ()  # each by itself tells which it is, and why
        return list(zip(first, second, strict=True)) if first and second else ()

    def _of_a_pass(
        self, side: Side, images: Sequence[Any], reporter: ProgressReporter
    ) -> Sequence[Means]:
        tensors = [_prepared(side, image).tensor for image in images]
        if {each.shape for each in tensors} != {(1, *tensors[0].shape[1:])}:
            self._apart[side] = False  # others will not be of one size either
        elif side not in self._apart:
            self._apart[side] = False  # unless what follows ends well
            self._apart[side] = keeps_images_apart(side.model, tensors[0], side.layers, reporter)
        if not self._apart[side]:
            return ()
        means = batched_means(side.model, torch.cat(tensors), side.layers, reporter)
        return [
            {at: rows[n] for at, rows in means.items()} for n in range(len(images) * bool(means))
        ]


def channel_means(
    a: Side,
    b: Side,
    images: Mapping[str, Any],
    progress: Progress,
    engine: Engine = in_this_process,
) -> BothMeans:
    """Compute the mean of each channel over its map, of both models for each image.

    A few images of one size go through at a time where that gives what they give alone, else one,
    and nothing but their means is kept. An image that can't be read, that a model can't take, that
    gives NaN or runs other layers than the images before it is left out of both.

    If `a` and `b` are one object, an image goes through once. Images are anything that `capture`
    takes, by name.

    Raises:
        HookVizError: no image went through.
        UnknownLayerError: a model lacks that layer.
        SettingError: an option has a value that means nothing.
    """
    rows: list[tuple[Means, Means]] = []
    names: list[str] = []
    failed: dict[str, HookVizError] = {}

    def tell(done: float, _left_out: int) -> None:
        progress(min(1.0, done / len(images)))

    work = MeansWork(a, b, needs_of([a.model, b.model], images.values()))
    for shard in engine(work, image_shards(images.items(), _SHARD), tell):
        for name, means in shard.items():
            try:
                if isinstance(means, HookVizError):
                    raise means
                if rows:
                    _check_same_layers(means, rows[0])
            except HookVizError as error:
                failed[name] = error
            else:
                rows.append(means)
                names.append(name)
    if not rows:
        name, reason = next(iter(failed.items()))
        if len(failed) == 1:
            raise reason
        raise HookVizError(f"No image went through. {shorten(name)}: {reason}") from reason
    first = _stacked([means[0] for means in rows])
    second = first if a is b else _stacked([means[1] for means in rows])
    reasons = {name: str(error) for name, error in failed.items()}
    return BothMeans(first, second, tuple(names), reasons)


def _means_of_both(a: Side, b: Side, image: Any, reporter: ProgressReporter) -> tuple[Means, Means]:
    decoded = _decoded(a, b, image)  # once for both
    if a is b:
        means = _means_of(a, decoded, reporter.within)
        return means, means
    first = _means_of(a, decoded, lambda share: reporter.within(share / 2))
    return first, _means_of(b, decoded, lambda share: reporter.within((1 + share) / 2))


def _decoded(a: Side, b: Side, image: Any) -> Any:
    """Return the image as both models take it, read once, unless one reads it in its own way."""
    reads_itself = a.model.read is not None or b.model.read is not None
    return image if reads_itself else inputs.open_source(a.model, image)


def _prepared(side: Side, image: Any) -> ModelInput:
    return inputs.prepare_input(side.model, image, size=side.size, whole=side.whole)


def _means_of(side: Side, image: Any, progress: Progress) -> Means:
    """Return the means of one model's channels for an image, ``(C,)`` by written address."""
    capture = capturing.capture(
        side.model, _prepared(side, image), side.layers, logits=False, progress=progress
    )
    means = {}
    for address, activation in capture.items():
        values = vector(activation)
        if np.iscomplexobj(values) or not np.isfinite(values).all():
            kind = "complex numbers" if np.iscomplexobj(values) else "NaN or infinite values"
            raise HookVizError(f"{address} of {side.model.title} puts out {kind} for it.")
        means[address] = values
    if not means:
        raise HookVizError(
            f"{side.model.title} has no conv layer to look at; name others, as list_layers(model, "
            "kind='all') lists them."
        )
    return means


def _check_same_layers(means: tuple[Means, Means], first: tuple[Means, Means]) -> None:
    """Raise if a model runs other layers for this image than it did for the first."""
    for these, those in zip(means, first, strict=True):
        sizes, before = ({name: len(row) for name, row in side.items()} for side in (these, those))
        if sizes != before:
            layers = {**before, **sizes}
            layer = next(name for name in layers if sizes.get(name) != before.get(name))
            raise HookVizError(
                f"{layer} has {sizes.get(layer, 0):,} channels for it and "
                f"{before.get(layer, 0):,} for the first image: the network takes another way."
            )


def _stacked(rows: Sequence[Means]) -> Means:
    stacked = {address: np.stack([row[address] for row in rows]) for address in rows[0]}
    for means in stacked.values():
        means.setflags(write=False)
    return stacked


def batched_means(
    model: Model, images: Tensor, layers: Sequence[str] | None, reporter: ProgressReporter
) -> dict[str, NDArray[np.float32]]:
    """Return the mean of each channel over its map, ``(N, C)``, of images ``(N, C, H, W)``.

    By written address; nothing where an image may take a way of its own, or a layer has no finite
    float32 map for each. Maps are averaged in their layer's hook and not kept. Several images go
    through with their channels last in memory, which is faster on CPUs.

    Raises:
        UnknownLayerError: the model lacks that layer.
        ModelError: the network can't take the images.
    """
    seen = layer_trace(model, tuple(images.shape[1:]))
    wanted = wanted_layers(model, seen, layers)
    to_come = sum(seen.calls[name] for name in wanted)
    means: dict[ActivationKey, NDArray[np.float32] | None] = {}

    def see(call: hooks.Call) -> None:
        nonlocal to_come
        reporter.within(0)  # whoever waits may end the pass here
        for path, tensor in hooks.plain_tensors_in(call.output):
            address = ActivationKey(call.layer, call.index, path)
            shape = len(images), *seen.shapes.get(address, ())
            layout = seen.layouts.get(address, UNKNOWN)
            means[address] = _means(tensor.detach(), layout, shape)
        to_come -= 1
        if not to_come:
            raise hooks.StopForward

    if len(images) > 1 and images.ndim == 4:
        images = images.contiguous(memory_format=torch.channels_last)
    if seen.is_static:
        with private_replica(model) as replica, hooks.observe(replica, wanted, see):
            forward_pass(model, replica, images, reporter)
    found = {str(address): each for address, each in means.items() if each is not None}
    is_all = len(found) == len(means) and {each.layer for each in means} == {*wanted}
    return found if is_all else {}


def keeps_images_apart(
    model: Model, image: Tensor, layers: Sequence[str] | None, reporter: ProgressReporter
) -> bool:
    """Return whether an image, ``(1, C, H, W)``, and its half have the means that they have alone.

    Most numbers that a network takes over a whole batch differ for the half alone.
    """
    pair = torch.cat([image / 2, image])
    together = batched_means(model, pair, layers, reporter)
    alone = [batched_means(model, each[None], layers, reporter) for each in pair]
    if not together or any([*each] != [*together] for each in alone):
        return False
    return all(
        np.allclose(rows[place], own[address][0], rtol=0, atol=_FAR * np.abs(own[address]).max())
        for address, rows in together.items()
        for place, own in enumerate(alone)
    )


def _means(tensor: Tensor, layout: Layout, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """Return ``(N, C)`` of maps of the shape, ``(N, C, …)``; None for other tensors."""
    if not layout.batch or layout.order == VECTORS or tensor.dtype != torch.float32:
        return None
    maps = layout.batch_maps(tensor)
    if maps.shape != shape or maps.ndim < 2 or not maps.numel():
        return None
    means = maps.mean(tuple(range(2, maps.ndim))) if maps.ndim > 2 else maps.clone()
    return means.cpu().numpy() if bool(means.isfinite().all()) else None

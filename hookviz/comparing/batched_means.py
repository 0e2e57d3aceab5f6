"""Compute the channel means of several images in one pass, where single passes give the same."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.types import UNKNOWN, VECTORS, ActivationKey, Layout, Model

_FAR = 1e-5  # of a layer's largest mean: rounding is less, what another image changes is more


def batched_means(
    model: Model, images: Tensor, layers: Sequence[str] | None, reporter: ProgressReporter
) -> dict[str, NDArray[np.float32]]:
    """Return the mean of each channel over its map, ``(N, C)``, of images ``(N, C, H, W)``.

    By written address; nothing where an image may take a way of its own, or a layer has no finite
    float32 map for each. Maps are averaged in their layer's hook and not kept. Several images go
    through with their channels last in memory, which is faster on CPUs.

    Raises:
        UnknownLayerError: the model has no such layer.
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

    Most of what a network takes over a whole batch is another number for the half alone.
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
    """Return ``(N, C)`` of maps of the shape, ``(N, C, …)``; None of what is no such maps."""
    if not layout.batch or layout.order == VECTORS or tensor.dtype != torch.float32:
        return None
    maps = layout.batch_maps(tensor)
    if maps.shape != shape or maps.ndim < 2 or not maps.numel():
        return None
    means = maps.mean(tuple(range(2, maps.ndim))) if maps.ndim > 2 else maps.clone()
    return means.cpu().numpy() if bool(means.isfinite().all()) else None

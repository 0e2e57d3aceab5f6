"""Remember each call of a pass as it returned: shapes and layouts, without the tensors."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import layers
from hookviz.capturing.layouts import Layout, Layouts, is_unbatched
from hookviz.hooking import hooks
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.torch_functions import counter

_FLOAT_BYTES = 4  # activations are kept as float32

Path = tuple[str, ...]
"""Where in an output a tensor is."""


class ReturnedCall(NamedTuple):
    """One call as it returned: shapes without the batch; of `maps` by their path in the output.

    What is no ordinary tensor counts as the one that it stands for (see `plain`), and `unlike` says
    what kind it is. `unbatched` are the parts of the output that have no batch, and `channels_last`
    those whose last dimension is the channels.
    """

    layer: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    maps: Mapping[Path, tuple[int, ...]]
    nbytes: int
    has_tensor: bool
    unlike: str
    unbatched: frozenset[Path]
    channels_last: frozenset[Path]


def returned_call(
    call: hooks.Call, module: nn.Module, images: Tensor, layouts: Layouts
) -> ReturnedCall:
    """Describe a call of `module` in a pass over `images`, ``(N, C, H, W)``.

    Args:
        call: as a hook sees it.
        module: the layer or block.
        images: the network's input.
        layouts: of this pass, which are told of the call.
    """
    taken = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
    taken_layout = None if taken is None else layouts.of(taken)
    outputs = [
        (path, tensor, layouts.follow(module, taken, tensor))
        for path, tensor in hooks.plain_tensors_in(call.output)
    ]
    shapes = {path: _shape_of_one(tensor, module, layout) for path, tensor, layout in outputs}
    last = frozenset(
        path
        for path, tensor, layout in outputs
        if len(shapes[path]) > 1 and _channels_last(tensor, shapes[path], module, images, layout)
    )
    for path, tensor, layout in outputs:
        if layout is None and tensor.ndim == images.ndim == 4 and len(tensor) == 1:
            layouts.take(tensor, Layout(batch=True, last=path in last))  # as its shape tells
    return ReturnedCall(
        call.layer,
        () if taken is None else _shape_of_one(taken, module, taken_layout),
        next(iter(shapes.values()), ()),
        {
            path: shapes[path]
            for path, tensor, layout in outputs
            if path not in last and _are_maps(tensor, module, images, layout)
        },
        sum(tensor.numel() for _, tensor, _ in outputs) * _FLOAT_BYTES,
        bool(outputs),
        next(filter(None, (kind_of(tensor) for _, tensor in hooks.tensors_in(call.output))), ""),
        frozenset(path for path, _, layout in outputs if layout is not None and not layout.batch),
        last,
    )


def check_same_way(call: hooks.Call, module: nn.Module, images: Tensor) -> None:
    """Refuse a network whose layers depend on the data: shapes alone can't tell what runs.

    Raises:
        ValueError: a transformer encoder with a padding mask makes other tensors on the way.
    """
    if not images.is_meta or not isinstance(module, nn.TransformerEncoder):
        return
    given, named = call.arguments
    mask = named.get("src_key_padding_mask", given[2] if len(given) > 2 else None)
    if mask is not None and getattr(module, "use_nested_tensor", False):
        raise ValueError("nested tensors are made of data")


def _shape_of_one(tensor: Tensor, module: nn.Module, layout: Layout | None) -> tuple[int, ...]:
    """Return a tensor's shape without the batch, if it has one: convolutions work without."""
    has_batch = not is_unbatched(tensor, module) if layout is None else layout.batch
    return tuple(tensor.shape[1:] if has_batch else tensor.shape)


def _are_maps(tensor: Tensor, module: nn.Module, images: Tensor, layout: Layout | None) -> bool:
    """Return whether an output is one image's channels, ``(C, H, W)``, to be drawn as maps.

    Or has as many dimensions as the network's input: ``(C, L)`` of sound, ``(C, D, H, W)`` of a
    volume. What a convolution puts out always is.
    """
    if isinstance(module, _ConvNd):
        return True
    if tensor.is_complex() or not tensor.numel():
        return False
    if layout is not None and not layout.batch:
        return tensor.ndim in {3, images.ndim - 1}
    return tensor.ndim in {4, images.ndim} and tensor.shape[0] == 1


def _channels_last(
    tensor: Tensor,
    shape: tuple[int, ...],
    module: nn.Module,
    images: Tensor,
    layout: Layout | None,
) -> bool:
    """Return whether the last dimension is the channels; by its shape where no layer tells."""
    if layout is not None:
        return layout.last
    if images.ndim != 4 or tensor.shape[0] != 1 or not all(shape):
        return False
    return layers.channels_last(shape, module, images.shape[-2] / images.shape[-1])


class Outputs:
    """Outputs of a pass's calls, in order; holds the newest one alone."""

    def __init__(self) -> None:
        self._newest: Tensor | None = None
        self._version: int | None = None

    def passes_on(self, output: Any) -> bool:
        """Return whether a call returned the tensor that the one before it did, unchanged.

        Of a tensor made in inference mode nobody can tell, since it counts no writes: False.
        """
        version = counter(output) if isinstance(output, Tensor) else None
        same = version is not None and output is self._newest and version == self._version
        self._newest, self._version = (None if version is None else output), version
        return same

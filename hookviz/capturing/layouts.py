"""Follow how the tensors of a pass lie: with or without a batch, channels first or last.

Told by the layers that take them one way by definition, and followed through those that keep it, as
an activation does and a dropout. What that leaves open passes at other sizes tell (`axes`).
"""

from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.nn.modules import pooling
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import layers
from hookviz.hooking.torch_functions import TensorMarks
from hookviz.types import FIRST, LAST, VECTORS, Layout

_POOLING = (
    *(pooling._AvgPoolNd, pooling._MaxPoolNd),
    *(pooling._AdaptiveAvgPoolNd, pooling._AdaptiveMaxPoolNd),
)


class Layouts:
    """Layouts of a pass's tensors, as far as its layers tell them."""

    def __init__(self) -> None:
        self._known = TensorMarks[Layout]()
        self._sure = TensorMarks[bool]()
        self._newest: dict[tuple[int, ...], Layout] = {}  # of tensors of this shape

    def of(self, tensor: Tensor) -> Layout | None:
        """Return what is known of a tensor; None where nothing is.

        One that no call has put out, such as the sum with a shortcut, lies as the newest of its
        shape does, unless all its sides are alike.
        """
        known = self._known.get(tensor)
        if known is None and len(set(tensor.shape[1:])) > 1:
            known = self._newest.get(tuple(tensor.shape))
        return known

    def is_sure(self, tensor: Tensor | None) -> bool:
        """Return whether a tensor has its channels first or last for certain, by definition."""
        return tensor is not None and bool(self._sure.get(tensor))

    def take(self, tensor: Tensor, layout: Layout, *, is_sure: bool = False) -> None:
        """Remember a tensor's layout."""
        self._known[tensor] = layout
        self._sure[tensor] = is_sure and layout.order in {FIRST, LAST}
        self._newest[tuple(tensor.shape)] = layout

    def follow(
        self, module: nn.Module, tensor_in: Tensor | None, tensor_out: Tensor
    ) -> Layout | None:
        """Derive the layout of a call's output from what it was given first."""
        layout, is_sure = self._followed(module, tensor_in, tensor_out)
        if layout is not None:
            self.take(tensor_out, layout, is_sure=is_sure)
        return layout

    def _followed(
        self, module: nn.Module, tensor_in: Tensor | None, tensor_out: Tensor
    ) -> tuple[Layout | None, bool]:
        before = None if tensor_in is None else self.of(tensor_in)
        layout = _by_definition(module, tensor_in, tensor_out, before)
        if layout is not None:
            return layout, isinstance(module, layers.CHANNELS_FIRST) or self.is_sure(tensor_in)
        layout = self._known.get(tensor_out)
        if layout is not None:  # a block returns what a layer in it did
            return layout, self.is_sure(tensor_out)
        if before is not None and tensor_in is not None:
            layout = _kept(module, tensor_in, tensor_out, before)
            if layout is not None:
                return layout, self.is_sure(tensor_in) and _is_exact(module, tensor_in, tensor_out)
        return self.of(tensor_out), False


def is_unbatched(tensor: Tensor, module: nn.Module) -> bool:
    """Return whether a convolution or pooling takes or gives this tensor without a batch."""
    dimensions = _dimensions(module)
    return bool(dimensions) and tensor.ndim == dimensions + 1


def _dimensions(module: nn.Module) -> int:
    """Return the dimensions that a convolution or pooling works over, 2 for images, else 0."""
    if isinstance(module, _ConvNd):
        return len(module.kernel_size)
    if not isinstance(module, _POOLING):
        return 0
    kinds = (kind for kind in type(module).__mro__ if kind.__module__ == pooling.__name__)
    sign = next(kinds).__name__[-2]  # of MaxPool2d; a person's own can be of _MaxPoolNd alone
    return int(sign) if sign.isdigit() else 0


def _by_definition(
    module: nn.Module, tensor_in: Tensor | None, tensor_out: Tensor, before: Layout | None
) -> Layout | None:
    if _dimensions(module):
        return Layout(FIRST, not is_unbatched(tensor_out, module))
    batch = before is None or before.batch
    if isinstance(module, layers.CHANNELS_FIRST):
        return Layout(FIRST, batch)
    if not layers.computes_along_the_last(module):
        return None
    if before is not None and tensor_in is not None and before.order == LAST:
        return before if tensor_in.shape[:-1] == tensor_out.shape[:-1] else None
    return Layout(VECTORS, batch)


def _is_permute(module: nn.Module) -> bool:
    kind = type(module)
    return kind.__name__ == "Permute" and kind.__module__ == "torchvision.ops.misc"


def _is_exact(module: nn.Module, tensor_in: Tensor, tensor_out: Tensor) -> bool:
    """Return whether a module is known to keep its axes; a person's own may turn a square."""
    is_torchs = type(module).__module__.startswith("torch.nn.") and not any(module.children())
    return _is_permute(module) or (is_torchs and tensor_in.shape == tensor_out.shape)


def _kept(
    module: nn.Module, tensor_in: Tensor, tensor_out: Tensor, before: Layout
) -> Layout | None:
    """Return the layout behind a module that is no layer with a layout of its own."""
    if tensor_in.ndim < int(before.batch) + 1:
        return None
    if _is_permute(module):
        order: Any = module.dims
        channels = tensor_in.ndim - 1 if before.last else int(before.batch)
        turned = [each % tensor_in.ndim for each in order]
        axis = turned.index(channels)
        turned.remove(channels)
        keeps_rows = turned == sorted(turned) and before.order != VECTORS
        if axis == tensor_in.ndim - 1:
            return replace(before, order=LAST if keeps_rows else VECTORS)
        return replace(before, order=FIRST if axis == before.batch and keeps_rows else "")
    if tensor_out.shape == tensor_in.shape:
        return before
    if tensor_out.numel() == tensor_in.numel() and not any(True for _ in module.parameters()):
        return _moved(tensor_in, tensor_out, before)
    return None


def _moved(tensor_in: Tensor, tensor_out: Tensor, before: Layout) -> Layout | None:
    """Return the layout of the same numbers in another order, where the channel count tells it."""
    channels = tensor_in.shape[-1 if before.last else int(before.batch)]
    first = int(before.batch)
    places = [axis for axis in range(first, tensor_out.ndim) if tensor_out.shape[axis] == channels]
    if len(places) == 1 and places[0] in (first, tensor_out.ndim - 1):
        # Windows are such, too: what lies beside channels at the end need not be rows and columns.
        return replace(before, order=FIRST if places[0] == first else VECTORS)
    return None

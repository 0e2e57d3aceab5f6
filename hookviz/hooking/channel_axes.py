"""Find which axis of a layer's output counts channels, as far as the modules of a pass tell."""

from collections.abc import Callable
from typing import Any, cast

from torch import Tensor, nn
from torch.nn.modules import pooling
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.dropout import _DropoutNd
from torch.nn.modules.instancenorm import _InstanceNorm

from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import TensorMarks

_PER_NUMBER = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.Threshold, nn.Hardtanh, nn.ELU),
    *(nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Softplus, nn.Softsign, nn.Softshrink),
    *(nn.Sigmoid, nn.LogSigmoid, nn.Hardsigmoid, nn.Hardswish, nn.Hardshrink, nn.Tanh),
    *(nn.Tanhshrink, nn.Identity, _DropoutNd),
)
_SEVERAL = (nn.RNNBase, nn.MultiheadAttention)  # whose first output alone is of units
_PERMUTE = "<class 'torchvision.ops.misc.Permute'>"  # importing it would import torch's compiler
_Axis = tuple[int, int | None]


class ChannelAxes:
    """Channel axes of the tensors in one pass, or several; fed with every layer call in order."""

    def __init__(self) -> None:
        self._marks = TensorMarks[int]()
        self._last: tuple[tuple[int, ...], int] | None = None

    def axis(
        self, module: nn.Module, call: hooks.Call, path: tuple[str, ...], output: Tensor
    ) -> int | None:
        """Return the axis along which channels, or numbers of a vector, lie; None where unknown.

        The module tells: convolutions, pools and norms have channels before rows and columns,
        linear layers, layer norms and recurrent layers last. An activation, or a container that
        returns the output of a part, has them where its tensor has them; torchvision's `Permute`
        moves them. Any other module's output has them as the last layer's, if it has the same
        shape and no other axis but that of images is as long, so that it can't be transposed. A
        tensor of two axes is a batch of vectors.
        """
        if isinstance(module, _SEVERAL) and path[:1] not in ((), ("0",)):
            return None
        shape = tuple(output.shape)
        axis = _own_axis(module, output)
        if axis is None:
            axis = self._marks.get(output)
        first_input = next(iter(call.inputs), None)
        if axis is None and isinstance(first_input, Tensor):
            if isinstance(module, _PER_NUMBER):
                axis = self._marks.get(first_input) if tuple(first_input.shape) == shape else None
            elif _PERMUTE in map(str, type(module).__mro__):
                before = self._marks.get(first_input)
                order = [at % output.ndim for at in cast(Any, module).dims]
                axis = None if before is None else order.index(before)
        if axis is None and self._last is not None:
            last, at = self._last
            beside = shape[1:] if at else shape  # no code puts channels where images were
            axis = at if last == shape and beside.count(shape[at]) == 1 else None
        if axis is None and len(shape) == 2:
            axis = 1
        if axis is not None:
            self._marks[output] = axis
        self._last = None if axis is None else (shape, axis)
        return axis


def _own_axis(module: nn.Module, output: Tensor) -> int | None:
    """Return the axis where the module itself puts its channels, if it has as many as it says."""
    for kind, axis_of in _AXES.items():
        if isinstance(module, kind):
            axis, channels = axis_of(module, output.ndim)
            fits = 0 <= axis < output.ndim and channels in (None, output.shape[axis])
            return axis if fits else None
    return None


def _layer_norm(module: Any, ndim: int) -> _Axis:
    """Return the channel axis of a `LayerNorm` over one axis; not of a subclass that norms maps."""
    usual = type(module).forward in (nn.LayerNorm.forward, nn.RMSNorm.forward)
    sizes = module.normalized_shape
    return (ndim - 1, sizes[0]) if usual and len(sizes) == 1 else (-1, None)


def _of_maps(module: nn.Module, ndim: int) -> _Axis:
    """Return the axis before the spatial ones, two of them for ``MaxPool2d``."""
    own = (kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules"))
    return ndim - 1 - int(next(own).__name__[-2]), None


def _last(_module: nn.Module, ndim: int) -> _Axis:
    return ndim - 1, None


_AXES: dict[type[nn.Module], Callable[[Any, int], _Axis]] = {
    _ConvNd: lambda module, ndim: (ndim - 1 - len(module.kernel_size), module.out_channels),
    _BatchNorm: lambda module, _ndim: (1, module.num_features),
    nn.GroupNorm: lambda module, _ndim: (1, module.num_channels),
    nn.Linear: lambda module, ndim: (ndim - 1, module.out_features),
    nn.Bilinear: lambda module, ndim: (ndim - 1, module.out_features),
    nn.LayerNorm: _layer_norm,
    nn.RMSNorm: _layer_norm,
    **dict.fromkeys(
        (
            *(_InstanceNorm, pooling._MaxPoolNd, pooling._AvgPoolNd),
            *(pooling._AdaptiveMaxPoolNd, pooling._AdaptiveAvgPoolNd),
        ),
        _of_maps,
    ),
    **dict.fromkeys(
        (
            *(nn.Embedding, nn.EmbeddingBag, nn.RNNCellBase, *_SEVERAL, nn.Transformer),
            *(nn.TransformerEncoder, nn.TransformerEncoderLayer),
            *(nn.TransformerDecoder, nn.TransformerDecoderLayer),
        ),
        _last,
    ),
}
"""The axis and how many channels there are; −1 for no axis, None for no number."""

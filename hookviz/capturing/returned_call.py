"""What a pass over a network is remembered by: each call as it returned, without its tensors."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import layers
from hookviz.hooking import hooks

_FLOAT_BYTES = 4  # activations are kept as float32


class ReturnedCall(NamedTuple):
    """One call as it returned: shapes without the batch; of `maps` by their path in the output."""

    layer: str
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    maps: Mapping[tuple[str, ...], tuple[int, ...]]
    nbytes: int
    has_tensor: bool


def returned_call(call: hooks.Call, module: nn.Module, images: Tensor) -> ReturnedCall:
    """What is remembered of a call of `module` in a pass over `images`, ``(N, C, H, W)``."""
    outputs = list(hooks.tensors_in(call.output))
    inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
    return ReturnedCall(
        call.layer,
        _shape_of_one(inputs[0], module) if inputs else (),
        _shape_of_one(outputs[0][1], module) if outputs else (),
        {
            path: _shape_of_one(tensor, module)
            for path, tensor in outputs
            if layers.are_maps(tensor, module, images)
        },
        sum(tensor.numel() for _, tensor in outputs) * _FLOAT_BYTES,
        bool(outputs),
    )


def _shape_of_one(tensor: Tensor, module: nn.Module) -> tuple[int, ...]:
    """A tensor's shape without the batch, which a convolution may have been called without."""
    unbatched = isinstance(module, _ConvNd) and tensor.ndim == len(module.kernel_size) + 1
    return tuple(tensor.shape if unbatched else tensor.shape[1:])


class Outputs:
    """What the calls of a pass return, in order; holds the newest one alone."""

    def __init__(self) -> None:
        self._newest: Tensor | None = None
        self._version = -1

    def passes_on(self, output: Any) -> bool:
        """Whether a call returned the tensor that the one before it did, with the same values.

        Of a tensor made in inference mode nobody can tell, since it counts no writes: False.
        """
        is_tensor = isinstance(output, Tensor) and not output.is_inference()
        version = output._version if is_tensor else -1
        same = is_tensor and output is self._newest and version == self._version
        self._newest, self._version = (output if is_tensor else None), version
        return same

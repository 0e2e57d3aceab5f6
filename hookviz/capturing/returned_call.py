"""Remember each call of a pass as it returned: shapes and layouts, without the tensors."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from hookviz.capturing import layers
from hookviz.capturing.layouts import Layouts, is_unbatched
from hookviz.hooking import hooks
from hookviz.hooking.torch_functions import counter, kind_of
from hookviz.types import (
    FIRST,
    LAST,
    TOKENS,
    UNKNOWN,
    VECTORS,
    WINDOWS,
    ActivationKey,
    LayerInfo,
    Layout,
)

_FLOAT_BYTES = 4  # activations are kept as float32

Path = tuple[str, ...]
"""Where in an output a tensor is."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReturnedCall:
    """One call as it returned: shapes and layouts of what it was given and put out.

    What is no ordinary tensor counts as the one that it stands for (see `plain`).

    Attributes:
        layer: whose call.
        taken: the shape of the first tensor that it was given, the batch included; None of none.
        taken_layout: how that lies.
        shapes: of its outputs, the batch included, by their path.
        layouts: how they lie.
        drawable: those of real numbers, and some.
        sure: outputs with channels first or last for certain; `axes` has to prove the others.
        is_taken_sure: whether what it was given has too.
        by_definition: whether its kind of layer has the channels where the layouts say.
        is_conv: whether it is a convolution.
        is_along_last: whether it is a linear layer, or another that computes along the last axis.
        nbytes: float32 bytes of its outputs.
        unlike: of what is no ordinary tensor, what kind it is.
    """

    layer: str
    taken: Shape | None
    taken_layout: Layout
    shapes: Mapping[Path, Shape]
    layouts: Mapping[Path, Layout]
    drawable: frozenset[Path]
    sure: frozenset[Path]
    is_taken_sure: bool
    by_definition: bool
    is_conv: bool
    is_along_last: bool
    nbytes: int
    unlike: str

    @property
    def input_shape(self) -> Shape:
        """Shape of what it was given, ``(C, H, W)`` of maps; empty of no tensor."""
        return () if self.taken is None else _map_shape(self.taken, self.taken_layout)

    def map_shape(self, path: Path) -> Shape:
        """Return the shape of an output without its batch, ``(C, H, W)`` of maps."""
        return _map_shape(self.shapes[path], self.layouts[path])

    def maps(self, dimensions: int) -> tuple[Path, ...]:
        """Return which outputs are one image's channels, ``(C, H, W)``.

        Or have as many dimensions as the network's input, `dimensions` with its batch: ``(C, L)``
        of sound, ``(C, D, H, W)`` of a volume. What a convolution puts out is, unless other sizes
        have shown that its rows and columns are no image's.
        """
        return tuple(
            path
            for path in self.shapes
            if (self.is_conv and self.layouts[path] != UNKNOWN)
            or (path in self.drawable and self._has_maps(path, dimensions))
        )

    def _has_maps(self, path: Path, dimensions: int) -> bool:
        shape, layout = self.shapes[path], self.layouts[path]
        if layout.order in {LAST, TOKENS, WINDOWS}:
            return True
        if layout.order == VECTORS or (layout.order != FIRST and dimensions == 4):
            return False
        if not layout.batch:
            return len(shape) in {3, dimensions - 1}
        return len(shape) in {4, dimensions} and shape[0] == 1


def _map_shape(shape: Shape, layout: Layout) -> Shape:
    return layout.map_shape(shape[1:] if layout.batch else shape)


class CallTables:
    """What calls put out, in order of return, by layer and by address.

    Attributes:
        counts, nbytes, map_outputs, layouts, shapes, taken: as `LayerTrace` has them.
        first: the first call of each layer.
        first_maps: the first call of each that puts out maps, and where they are in its output.
    """

    def __init__(self, calls: Iterable[ReturnedCall], dimensions: int) -> None:
        """List calls of a pass whose input has so many axes, its batch included."""
        self.counts, self.nbytes = Counter[str](), Counter[str]()
        self.layouts, self.taken = dict[ActivationKey, Layout](), dict[ActivationKey, Layout]()
        self.shapes = dict[ActivationKey, Shape]()
        self.map_outputs: dict[str, tuple[ActivationKey, ...]] = {}
        self.first: dict[str, ReturnedCall] = {}
        self.first_maps: dict[str, tuple[ReturnedCall, Path]] = {}
        for call in calls:
            name, number = call.layer, self.counts[call.layer]
            self.counts[name] += 1
            self.nbytes[name] += call.nbytes
            self.taken[ActivationKey(name, number)] = call.taken_layout
            self.first.setdefault(name, call)
            for path, layout in call.layouts.items():
                self.layouts[ActivationKey(name, number, path)] = layout
                self.shapes[ActivationKey(name, number, path)] = call.map_shape(path)
            for path in call.maps(dimensions):
                address = ActivationKey(name, number, path)
                self.map_outputs[name] = (*self.map_outputs.get(name, ()), address)
                self.first_maps.setdefault(name, (call, path))


def described(info: LayerInfo, call: ReturnedCall, path: Path | None = None) -> LayerInfo:
    """Return a layer's description by one output of a call, the first one without a `path`."""
    path = next(iter(call.shapes), None) if path is None else path
    layout = UNKNOWN if path is None else call.layouts[path]
    shape = () if path is None else call.map_shape(path)
    return replace(
        info,
        input_shape=call.input_shape,
        output_shape=shape,
        layout=layout.word if len(shape) > 1 else "",
        prefix_tokens=layout.prefix_tokens,
        frames=1 if path is None else _frames(call.shapes[path], layout),
        steps=prod(call.shapes[path][:-1]) if info.steps and path is not None else info.steps,
    )


def _frames(shape: Shape, layout: Layout) -> int:
    """Return how many rows an output's batch has; windows and tokens count as one."""
    return max(1, shape[0]) if layout.batch and layout.order == FIRST and len(shape) > 2 else 1


def returned_call(call: hooks.Call, module: nn.Module, layouts: Layouts) -> ReturnedCall:
    """Describe a call of `module`, as far as the layers of a pass tell.

    Args:
        call: as a hook sees it.
        module: the layer or block.
        layouts: of this pass, which are told of the call.
    """
    by_definition = isinstance(module, layers.CHANNELS_FIRST)
    taken = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
    taken_layout = None if taken is None else layouts.of(taken)
    is_first = taken_layout is not None and taken_layout.order == FIRST
    if taken is not None and (taken_layout is None or (by_definition and not is_first)):
        taken_layout = Layout(FIRST if by_definition else "", batch=not is_unbatched(taken, module))
    outputs = dict(hooks.plain_tensors_in(call.output))
    followed = {path: layouts.follow(module, taken, each) for path, each in outputs.items()}
    return ReturnedCall(
        call.layer,
        None if taken is None else tuple(taken.shape),
        taken_layout or UNKNOWN,
        {path: tuple(tensor.shape) for path, tensor in outputs.items()},
        {path: layout or UNKNOWN for path, layout in followed.items()},
        frozenset(path for path, each in outputs.items() if each.numel() and not each.is_complex()),
        frozenset(path for path, each in outputs.items() if layouts.is_sure(each)),
        by_definition or layouts.is_sure(taken),
        by_definition,
        isinstance(module, _ConvNd),
        layers.computes_along_the_last(module),
        sum(tensor.numel() for tensor in outputs.values()) * _FLOAT_BYTES,
        next(filter(None, (kind_of(tensor) for _, tensor in hooks.tensors_in(call.output))), ""),
    )


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

"""A model's layers as plain data, never the modules themselves."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torch import nn
from torch.nn.modules.conv import _ConvNd

from hookviz.types import LayerInfo


def conv_names(network: nn.Module) -> frozenset[str]:
    """Names of every convolution layer, transposed ones included."""
    return frozenset(
        name for name, module in network.named_modules() if isinstance(module, _ConvNd)
    )


def leaf_names(network: nn.Module) -> frozenset[str]:
    """Names of every module that has no modules inside, and of every convolution."""
    leaves = {name for name, module in network.named_modules() if not any(module.children())}
    return frozenset(leaves - {""}) | conv_names(network)  # a parametrised one has parts


def describe(
    name: str, module: nn.Module, input_shape: tuple[int, ...], output_shape: tuple[int, ...]
) -> LayerInfo:
    """One layer as plain data; the shapes are those of its first call, without the batch."""
    info = LayerInfo(
        name=name,
        kind=type(module).__name__,
        index=0,
        stage="",
        calls=1,
        input_shape=input_shape,
        output_shape=output_shape,
        parameters=sum(parameter.numel() for parameter in module.parameters()),
    )
    if not isinstance(module, _ConvNd):
        return info
    return replace(
        info,
        kernel_size=module.kernel_size,
        stride=module.stride,
        padding=module.padding,
        dilation=module.dilation,
        groups=module.groups,
        bias=module.bias is not None,
    )


def numbered(listed: Iterable[LayerInfo], calls: Mapping[str, int]) -> tuple[LayerInfo, ...]:
    """The layers with their index in this list, their number of calls, and their stage.

    A stage is the part of the network that a person would name: the first part of the dotted
    name, and the second too where one container, such as ``features``, holds more than half of
    the network and would say nothing.
    """
    every = tuple(listed)
    sizes = Counter(map(_first, every))
    return tuple(
        replace(
            layer,
            index=index,
            calls=calls[layer.name],
            stage=".".join(
                layer.name.split(".")[: 2 if sizes[_first(layer)] > len(every) / 2 else 1]
            ),
        )
        for index, layer in enumerate(every)
    )


def _first(layer: LayerInfo) -> str:
    return layer.name.partition(".")[0]

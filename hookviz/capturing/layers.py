"""Describe a model's layers as plain data, never the modules themselves."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from torch import nn
from torch.jit import ScriptModule
from torch.nn.modules import pooling
from torch.nn.modules.conv import _ConvNd
from torch.nn.utils.parametrize import is_parametrized

from hookviz.hooking.modules import named_modules
from hookviz.types import UNKNOWN, LayerInfo, Layout


def conv_names(network: nn.Module) -> frozenset[str]:
    """Return the names of every convolution layer, transposed ones included."""
    return frozenset(name for name, module in named_modules(network) if isinstance(module, _ConvNd))


def linear_names(network: nn.Module) -> frozenset[str]:
    """Return the names of every linear layer, whose channels are the last axis of its output."""
    return frozenset(
        name
        for name, module in named_modules(network)
        if isinstance(module, nn.Linear) and computes_along_the_last(module)
    )


def leaf_names(network: nn.Module) -> frozenset[str]:
    """Return the names of the modules that a person would call layers.

    Modules without modules inside, modules that hold weights of their own beside others (as a batch
    norm with its activation inside), and convolutions. What lies inside a convolution or a
    parametrised layer, such as a weight norm, is part of it; so is what a TorchScript module runs.
    """
    return frozenset(
        name
        for name in names_outside_of_layers(network)
        if _is_whole(module := network.get_submodule(name))
        or not any(module.children())
        or _holds_numbers(module)
    )


def names_outside_of_layers(network: nn.Module) -> frozenset[str]:
    """Return names of layers and blocks, not of what lies inside a convolution and its like."""
    modules = {name: module for name, module in named_modules(network) if name}
    whole = {name for name, module in modules.items() if _is_whole(module)}
    return frozenset(
        name
        for name in modules
        if not any(name[:end] in whole for end, sign in enumerate(name) if sign == ".")
    )


def quiet_names(network: nn.Module) -> frozenset[str]:
    """Return the names of layers whose own functions are part of them.

    So are those of torch's own blocks. Not those of a person's block
    that holds weights beside its layers: what its code calls stands between them.
    """
    return frozenset(
        name
        for name in names_outside_of_layers(network)
        if _is_whole(module := network.get_submodule(name))
        or not any(module.children())
        or (type(module).__module__.startswith("torch.nn.") and not isinstance(module, CONTAINERS))
    )


def _is_whole(module: nn.Module) -> bool:
    return isinstance(module, _ConvNd | ScriptModule) or is_parametrized(module)


def _holds_numbers(module: nn.Module) -> bool:
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return any(tensor.numel() for tensor in tensors)


def parameter_counts(network: nn.Module, listed: Collection[str]) -> Counter[str]:
    """Count the parameters of each listed layer: its own, and those of parts not listed.

    Numbers outside of all listed layers are counted under ``""``. A tensor that two layers share
    counts for both.
    """
    counts: Counter[str] = Counter()
    for name, parameter in network.named_parameters(remove_duplicate=False):
        parts = name.split(".")
        owners = (".".join(parts[:end]) for end in range(len(parts) - 1, 0, -1))
        counts[next((owner for owner in owners if owner in listed), "")] += parameter.numel()
    return counts


def parameters_inside(module: nn.Module) -> int:
    """Count the parameters of a layer or a block with all its parts, each tensor once."""
    return sum(parameter.numel() for parameter in module.parameters())


CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
"""Blocks of torch's own that only hold what a person puts into them."""

CHANNELS_FIRST = (
    *(_ConvNd, nn.modules.batchnorm._NormBase, nn.GroupNorm, pooling._AdaptiveAvgPoolNd),
    *(pooling._AdaptiveMaxPoolNd, pooling._AvgPoolNd, pooling._MaxPoolNd),
)
"""Whose maps torch takes as ``(C, H, W)`` by definition."""


PER_STEP = (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention)
"""Which use all their parameters at each step, or for each token."""


def computes_along_the_last(module: nn.Module) -> bool:
    """Return whether it is a linear layer or a layer norm over the last dimension alone."""
    if isinstance(module, nn.LayerNorm) and len(module.normalized_shape) > 1:
        return False
    forward = getattr(type(module), "forward", None)  # which the class of a script has not
    return forward in (nn.Linear.forward, nn.LayerNorm.forward)


def in_order_of_beginning(returned: Iterable[str]) -> Mapping[str, int]:
    """Order modules as they begin, from their names in order of return: blocks first.

    A block begins with the first of its parts that does.
    """
    first: dict[str, int] = {}
    for turn, name in enumerate(returned):
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            first.setdefault(".".join(parts[:end]), turn)
    begun = sorted(first, key=lambda name: (first[name], name.count(".")))
    return {name: place for place, name in enumerate(begun)}


def describe(
    name: str,
    module: nn.Module,
    input_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    parameters: int,
    *,
    layout: Layout = UNKNOWN,
) -> LayerInfo:
    """Describe one layer as plain data, by the shapes of its first call's maps or numbers."""
    info = LayerInfo(
        name=name,
        kind=type(module).__name__,
        index=0,
        stage="",
        calls=1,
        input_shape=input_shape,
        output_shape=output_shape,
        parameters=parameters,
        layout=layout.word if len(output_shape) > 1 else "",
        prefix_tokens=layout.prefix_tokens,
    )
    if isinstance(module, PER_STEP):
        return replace(info, steps=1)
    if not isinstance(module, _ConvNd):
        return replace(info, bias=isinstance(module, nn.Linear) and module.bias is not None)
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
    """Give the layers their numbers in this list, and add their number of calls and their stage.

    A stage is the part of the network that a person would name: the first part of the dotted
    name, and the second too where one container, such as ``features``, holds more than half of
    the network and would say nothing.
    """
    layers = tuple(listed)
    sizes = Counter(map(_first, layers))
    return tuple(
        replace(
            layer,
            index=index,
            calls=calls[layer.name],
            stage=".".join(
                layer.name.split(".")[: 2 if sizes[_first(layer)] > len(layers) / 2 else 1]
            ),
        )
        for index, layer in enumerate(layers)
    )


def _first(layer: LayerInfo) -> str:
    return layer.name.partition(".")[0]

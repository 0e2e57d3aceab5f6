"""Find which layers consume a conv layer's channels, so that a channel can be removed from all.

The network's code is traced by `torch.fx`, without data. Channels are followed through what works
on every channel by itself and makes 0 of a channel of zeros: batch norms (which are checked channel
by channel), most activations, pooling, dropout. They are followed to convolutions of one group, and
to linear layers behind a flattening or a global mean; there may be several, as of SqueezeNet's
squeezed channels. A layer has no pruning group if its channels reach anything that depends on other
channels: a sum, a concatenation, a normalisation over channels, a convolution in groups, the
output.
"""

import operator
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from hookviz.errors import ModelError, shorten
from hookviz.language.saying import say


def trace_graph(network: nn.Module) -> fx.Graph:
    """Trace the code as `torch.fx.symbolic_trace` does, safely beside other threads.

    That function changes the class of all modules while it traces, which breaks every pass in
    another thread. Here the layers of `network` itself get other forwards.

    `network` is a private copy, which is unusable afterwards.
    """
    tracer = fx.Tracer()
    tracer.root, tracer.graph, tracer.tensor_attrs = network, fx.Graph(), {}
    for name, module in network.named_modules():
        if name and tracer.is_leaf_module(module, name):
            module.forward = partial(_call_proxy, tracer, name)
    output = network(tracer.create_proxy("placeholder", "images", (), {}))
    tracer.create_node("output", "output", (tracer.create_arg(output),), {})
    return tracer.graph


def _call_proxy(tracer: fx.Tracer, name: str, *args: Any, **kwargs: Any) -> fx.Proxy:
    return tracer.create_proxy("call_module", name, args, kwargs)


def arguments_of(node: fx.Node, **defaults: Any) -> list[Any]:
    """Return the arguments of a call after its first, in the order of `defaults`."""
    passed = dict(zip(defaults, node.args[1:], strict=False)) | dict(node.kwargs)
    return [passed.get(name, default) for name, default in defaults.items()]


def reads_batch_size_only(node: fx.Node) -> bool:
    """Return whether a node only reads the number of images or dimensions."""
    if _is_shape(node):
        return all(map(is_batch_size, node.users))
    return node.op == "call_method" and (node.target == "dim" or is_batch_size(node))


def is_batch_size(node: Any) -> bool:
    """Return whether a node is the number of images."""
    if not isinstance(node, fx.Node):
        return False
    if node.op == "call_method" and node.target == "size":
        return bool(node.args[1:] == (0,))
    return node.target is operator.getitem and _is_shape(node.args[0]) and bool(node.args[1] == 0)


def _is_shape(node: Any) -> bool:
    """Return whether a node is the whole shape of a tensor."""
    if not isinstance(node, fx.Node):
        return False
    if node.op == "call_method" and node.target == "size":
        return len(node.args) == 1 and not node.kwargs
    return node.target is getattr and bool(node.args[1] == "shape")


CONVS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)

BY_CHANNEL = frozenset(
    (
        *(nn.Identity, nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
        *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.ELU, nn.CELU, nn.SELU, nn.GELU, nn.SiLU),
        *(nn.Mish, nn.Hardswish, nn.Tanh, nn.Softsign, nn.Tanhshrink),
        *(nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d),
        *(nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d),
        *(nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d),
        *(nn.ZeroPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d, nn.Upsample),
    )
)
"""Modules that work on every channel by itself and take 0 to 0."""

_FUNCTIONS: frozenset[Any] = frozenset(
    (
        *(torch.relu, torch.relu_, torch.tanh, F.relu, F.relu_, F.relu6, F.leaky_relu, F.elu),
        *(F.gelu, F.silu, F.mish, F.hardswish, F.tanh, F.dropout, F.dropout2d),
        *(F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d),
        *(F.interpolate, torch.max_pool2d),
    )
)
_METHODS = frozenset(("relu", "relu_", "tanh", "contiguous", "clone"))

_MAP_DIMS = ([2, 3], [-2, -1])
"""Arguments of a mean over the dimensions of a map."""


@dataclass(frozen=True, slots=True)
class PruningGroup:
    """A conv layer and all layers that have to change when one of its channels is removed, by name.

    Attributes:
        conv: the conv layer.
        between: the layers between it and the consumers that hold numbers for each channel.
        consumers: the convolutions and linear layers that read its channels, and whether they read
            them flattened, with as many columns for each channel as its map has cells.
    """

    conv: str
    between: tuple[str, ...]
    consumers: Mapping[str, bool]


def pruning_groups(network: nn.Module) -> dict[str, PruningGroup | str]:
    """Find the pruning group of each conv layer that the network's code calls.

    A text in its place says why there is none, beginning with the node that prevents it.

    `network` is a copy in evaluation mode, which is unusable afterwards.

    Raises:
        ModelError: its code can't be traced.
    """
    try:
        graph = trace_graph(network)
    except Exception as error:  # whatever unknown code does with a proxy
        why = shorten(str(error).partition("\n")[0].rstrip("."), 200) or type(error).__name__
        raise ModelError(
            say(
                "The code of {name} can't be followed, so nobody can tell where its channels "
                "go: {reason}.",
                name=type(network).__name__,
                reason=why,
            )
        ) from error
    finder = _GroupFinder(network, graph)
    return {
        str(node.target): finder.group(node)
        for node in graph.nodes
        if node.op == "call_module" and isinstance(finder.module(node), CONVS)
    }


class _GroupFinder:
    """Follows the channels of conv layers through one graph."""

    def __init__(self, network: nn.Module, graph: fx.Graph) -> None:
        self._modules = dict(network.named_modules(remove_duplicate=False))
        self._calls = Counter(
            id(self.module(node)) for node in graph.nodes if node.op == "call_module"
        )
        parameters = network.named_parameters(remove_duplicate=False)
        self._holders = Counter(id(parameter) for _, parameter in parameters)
        reads = (node for node in graph.nodes if node.op == "get_attr")
        self._read_directly = {str(node.target).rpartition(".")[0] for node in reads}

    def module(self, node: fx.Node) -> Any:
        return self._modules[str(node.target)]

    def group(self, start: fx.Node) -> PruningGroup | str:
        """Return the pruning group of a conv layer, or why there is none."""
        try:
            return self._follow(start)
        except _NotPrunableError as reason:
            return str(reason)

    def _follow(self, start: fx.Node) -> PruningGroup:
        conv = self.module(start)
        self._check_layer(start)
        if conv.groups != 1:
            raise _NotPrunableError(
                say(
                    "{layer} has {groups} groups of channels",
                    layer=self._called(start),
                    groups=conv.groups,
                )
            )
        between: list[str] = []
        consumers: dict[str, bool] = {}
        pending = [(start, False)]
        while pending:
            before, flat = pending.pop()
            users = [user for user in before.users if not reads_batch_size_only(user)]
            if not users:
                raise _NotPrunableError(
                    say("nothing goes on with {step}", step=self._called(before))
                )
            for node in users:
                self._check_alone(node, before)
                if node.op == "call_module" and type(self.module(node)) in (*CONVS, nn.Linear):
                    self._check_layer(node)
                    _check_consumer(self._called(node), conv, self.module(node), flat=flat)
                    consumers[str(node.target)] = flat
                    continue
                flattens = self._flattens(node)
                if not flattens and not self._is_by_channel(node, flat=flat):
                    raise _NotPrunableError(
                        say(
                            "{step} is not known to keep channels apart and zeros at 0",
                            step=self._called(node),
                        )
                    )
                if self._holds_channels(node):
                    self._check_layer(node)
                    between.append(str(node.target))
                pending.append((node, flat or flattens))
        return PruningGroup(str(start.target), tuple(between), consumers)

    def _check_alone(self, node: fx.Node, before: fx.Node) -> None:
        """Refuse a node that reads anything beside these values, or the network's output."""
        if node.op == "output":
            raise _NotPrunableError(
                say("{step} is what the network puts out", step=self._called(before))
            )
        others = [other for other in node.all_input_nodes if not is_batch_size(other)]
        if others != [before] or node.args[:1] != (before,) or before in node.args[1:]:
            raise _NotPrunableError(
                say("{step} puts it together with something else", step=self._called(node))
            )

    def _check_layer(self, node: fx.Node) -> None:
        """Refuse a layer from which channels can't be removed."""
        module, name = self.module(node), str(node.target)
        if type(module) not in (*CONVS, *NORMS, nn.Linear, nn.PReLU):
            raise _NotPrunableError(
                say(
                    "{layer} is a {kind}, which may use its weights anew",
                    layer=name,
                    kind=type(module).__name__,
                )
            )
        if self._calls[id(module)] > 1:
            raise _NotPrunableError(
                say("{name} runs {calls} times", name=name, calls=self._calls[id(module)])
            )
        if (
            any(self._holders[id(weight)] > 1 for weight in module.parameters())
            or name in self._read_directly
        ):
            raise _NotPrunableError(say("{name} shares its weights", name=name))
        if module._forward_hooks or module._forward_pre_hooks:
            raise _NotPrunableError(say("{name} has hooks of its own", name=name))

    def _is_by_channel(self, node: fx.Node, *, flat: bool) -> bool:
        if flat and self._holds_channels(node):  # a number for every column
            return False
        if node.op == "call_module":
            return type(self.module(node)) in (*BY_CHANNEL, *NORMS)
        known: frozenset[Any] = _METHODS if node.op == "call_method" else _FUNCTIONS
        return node.target in known

    def _holds_channels(self, node: fx.Node) -> bool:
        """Return whether a node is a layer that holds numbers for every channel."""
        if node.op != "call_module":
            return False
        module = self.module(node)
        return type(module) in NORMS or getattr(module, "num_parameters", 1) > 1

    def _flattens(self, node: fx.Node) -> bool:
        """Return whether a node makes ``(N, C · cells)`` of ``(N, C, …)``, by channel."""
        if node.op == "call_module":
            module = self.module(node)
            return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)
        if node.target in (torch.flatten, "flatten"):
            return arguments_of(node, start_dim=0, end_dim=-1) == [1, -1]
        if node.target in (torch.mean, "mean"):
            dims, kept = arguments_of(node, dim=None, keepdim=False)
            return not kept and isinstance(dims, list | tuple) and sorted(dims) in _MAP_DIMS
        if node.op == "call_method" and node.target in ("view", "reshape"):
            shape = node.args[1:]
            return len(shape) == 2 and is_batch_size(shape[0]) and bool(shape[1] == -1)
        return False

    def _called(self, node: fx.Node) -> str:
        if node.op == "call_module":
            return f"{node.target} ({type(self.module(node)).__name__})"
        return str(getattr(node.target, "__name__", node.target))


class _NotPrunableError(Exception):
    """Why a layer's channels can't be removed."""


def _check_consumer(name: str, conv: Any, module: Any, *, flat: bool) -> None:
    """Refuse a consumer that can't read fewer channels."""
    if isinstance(module, nn.Linear):
        if not flat:
            raise _NotPrunableError(
                say("{name} mixes the cells of a row, and not channels", name=name)
            )
        if module.in_features % conv.out_channels:
            raise _NotPrunableError(say("{name} takes in other channels too", name=name))
    elif module.groups != 1:
        raise _NotPrunableError(
            say("{name} has {groups} groups of channels", name=name, groups=module.groups)
        )
    elif flat:
        raise _NotPrunableError(say("{name} takes in what was flattened", name=name))

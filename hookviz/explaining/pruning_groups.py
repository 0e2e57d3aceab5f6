"""Where a conv layer's channels go: to which next layers alone, or why that can't be said.

The network's code is followed by `torch.fx`, without data. A way goes on through what works on
every channel by itself and makes 0 of a channel of zeros: batch norms (which are looked at channel
by channel), most activations, pooling, dropout. It ends at a convolution of one group, or at a
linear layer behind a flattening or a global mean; or at several of them, as SqueezeNet's squeezed
channels do. There is no way through anything that knows of other channels: a sum, a concatenation,
a normalisation over channels, a convolution in groups, the output.

Over 300 lines: its sentences for people stand whole, with a line for each fact.
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
from hookviz.hooking import replicas
from hookviz.hooking.isolation import isolated
from hookviz.hooking.purity import is_known_code
from hookviz.language.saying import say

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
"""Modules that keep channels apart and take 0 to 0."""

_FUNCTIONS: frozenset[Any] = frozenset(
    (
        *(torch.relu, torch.relu_, torch.tanh, F.relu, F.relu_, F.relu6, F.leaky_relu, F.elu),
        *(F.gelu, F.silu, F.mish, F.hardswish, F.tanh, F.dropout, F.dropout2d),
        *(F.max_pool2d, F.avg_pool2d, F.adaptive_avg_pool2d, F.adaptive_max_pool2d),
        *(F.interpolate, torch.max_pool2d),
    )
)
_METHODS = frozenset(("relu", "relu_", "tanh", "contiguous", "clone"))


@dataclass(frozen=True, slots=True)
class PruningGroup:
    """From a conv layer to all layers that take in its channels, each by name.

    Attributes:
        between: the layers on the way that hold numbers for each channel.
        consumers: the convolutions and linear layers at its ends, and whether they take in what was
            flattened, with as many columns for each channel as its map has cells.
    """

    conv: str
    between: tuple[str, ...]
    consumers: Mapping[str, bool]


def pruning_groups(network: nn.Module) -> dict[str, PruningGroup | str]:
    """For each conv layer that the network's code calls, the way of its channels.

    A text in its place says why there is no such way, beginning with what is in it.

    Args:
        network: in evaluation mode; is only looked at.

    Raises:
        ModelError: its code can't be followed.
    """
    # A person's code may hand what a tensor holds to C: then there has to be something.
    known = is_known_code(network)
    on_meta = replicas.meta_copy(network) if known else replicas.replicate(network)
    try:
        with isolated(network):
            graph = _graph_of(on_meta)
    except Exception as error:  # whatever a person's code makes of a stand-in for a tensor
        why = shorten(str(error).partition("\n")[0].rstrip("."), 200) or type(error).__name__
        raise ModelError(
            say(
                "The code of {name} can't be followed, so nobody can tell where its channels "
                "go: {reason}.",
                name=type(network).__name__,
                reason=why,
            )
        ) from error
    walk = _Walk(on_meta, graph)
    return {
        str(node.target): walk.way(node)
        for node in graph.nodes
        if node.op == "call_module" and isinstance(walk.module(node), CONVS)
    }


def _graph_of(network: nn.Module) -> fx.Graph:
    """What the code does with its input, as `torch.fx.symbolic_trace` has it.

    That changes the class of all modules while it traces, which breaks every pass in another
    thread. So the layers of `network` itself, which is private and no good afterwards, stand in.
    """
    tracer = fx.Tracer()
    tracer.root, tracer.graph, tracer.tensor_attrs = network, fx.Graph(), {}
    for name, module in network.named_modules():
        if name and tracer.is_leaf_module(module, name):
            module.forward = partial(_stand_in, tracer, name)
    output = network(tracer.create_proxy("placeholder", "images", (), {}))
    tracer.create_node("output", "output", (tracer.create_arg(output),), {})
    return tracer.graph


def _stand_in(tracer: fx.Tracer, name: str, *given: Any, **named: Any) -> fx.Proxy:
    return tracer.create_proxy("call_module", name, given, named)


class _Walk:
    """Follows channels through one graph."""

    def __init__(self, network: nn.Module, graph: fx.Graph) -> None:
        self._modules = dict(network.named_modules(remove_duplicate=False))
        self._calls = Counter(
            id(self.module(node)) for node in graph.nodes if node.op == "call_module"
        )
        named = network.named_parameters(remove_duplicate=False)
        self._holders = Counter(id(parameter) for _, parameter in named)
        read = (node for node in graph.nodes if node.op == "get_attr")
        self._read = {str(node.target).rpartition(".")[0] for node in read}

    def module(self, node: fx.Node) -> Any:
        """What a node calls."""
        return self._modules[str(node.target)]

    def way(self, start: fx.Node) -> PruningGroup | str:
        """The way of a conv layer's channels, or why there is none."""
        try:
            return self._followed(start)
        except _NotPrunableError as reason:
            return str(reason)

    def _followed(self, start: fx.Node) -> PruningGroup:
        conv = self.module(start)
        self._check(start)
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
        ahead = [(start, False)]
        while ahead:
            before, flat = ahead.pop()
            users = [user for user in before.users if not _asks_how_many(user)]
            if not users:
                raise _NotPrunableError(
                    say("nothing goes on with {step}", step=self._called(before))
                )
            for node in users:
                self._check_alone(node, before)
                if node.op == "call_module" and type(self.module(node)) in (*CONVS, nn.Linear):
                    self._check(node)
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
                    self._check(node)
                    between.append(str(node.target))
                ahead.append((node, flat or flattens))
        return PruningGroup(str(start.target), tuple(between), consumers)

    def _check_alone(self, node: fx.Node, before: fx.Node) -> None:
        """Make sure that a node goes on with these values, and with nothing beside them."""
        if node.op == "output":
            raise _NotPrunableError(
                say("{step} is what the network puts out", step=self._called(before))
            )
        others = [other for other in node.all_input_nodes if not _is_how_many(other)]
        if others != [before] or node.args[:1] != (before,) or before in node.args[1:]:
            raise _NotPrunableError(
                say("{step} puts it together with something else", step=self._called(node))
            )

    def _check(self, node: fx.Node) -> None:
        """Make sure that a layer's numbers can be taken out."""
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
        if any(self._holders[id(part)] > 1 for part in module.parameters()) or name in self._read:
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
        """Whether a node is a layer that holds numbers for every channel."""
        if node.op != "call_module":
            return False
        module = self.module(node)
        return type(module) in NORMS or getattr(module, "num_parameters", 1) > 1

    def _flattens(self, node: fx.Node) -> bool:
        """Whether a node makes ``(N, C · cells)`` of ``(N, C, …)``, channel after channel."""
        if node.op == "call_module":
            module = self.module(node)
            return type(module) is nn.Flatten and (module.start_dim, module.end_dim) == (1, -1)
        if node.target in (torch.flatten, "flatten"):
            return _arguments(node, start_dim=0, end_dim=-1) == [1, -1]
        if node.target in (torch.mean, "mean"):
            dims, kept = _arguments(node, dim=None, keepdim=False)
            return not kept and isinstance(dims, list | tuple) and sorted(dims) in _CELLS
        if node.op == "call_method" and node.target in ("view", "reshape"):
            shape = node.args[1:]
            return len(shape) == 2 and _is_how_many(shape[0]) and bool(shape[1] == -1)
        return False

    def _called(self, node: fx.Node) -> str:
        """A node as people would name it."""
        if node.op == "call_module":
            return f"{node.target} ({type(self.module(node)).__name__})"
        return str(getattr(node.target, "__name__", node.target))


class _NotPrunableError(Exception):
    """Why the channels of a layer can't be followed."""


def _check_consumer(name: str, conv: Any, module: Any, *, flat: bool) -> None:
    """Make sure that the layer at the end of a way can do with fewer channels."""
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


def _arguments(node: fx.Node, **defaults: Any) -> list[Any]:
    """The arguments of a call after its first, in order, whether given by name or not."""
    given = dict(zip(defaults, node.args[1:], strict=False)) | dict(node.kwargs)
    return [given.get(name, default) for name, default in defaults.items()]


def _asks_how_many(node: fx.Node) -> bool:
    """Whether a node only looks at how many images or dimensions there are."""
    if _is_shape(node):
        return all(map(_is_how_many, node.users))
    return node.op == "call_method" and (node.target == "dim" or _is_how_many(node))


def _is_how_many(node: Any) -> bool:
    """Whether a node is the number of images."""
    if not isinstance(node, fx.Node):
        return False
    if node.op == "call_method" and node.target == "size":
        return bool(node.args[1:] == (0,))
    return node.target is operator.getitem and _is_shape(node.args[0]) and bool(node.args[1] == 0)


def _is_shape(node: Any) -> bool:
    """Whether a node is all of a tensor's shape."""
    if not isinstance(node, fx.Node):
        return False
    if node.op == "call_method" and node.target == "size":
        return len(node.args) == 1 and not node.kwargs
    return node.target is getattr and bool(node.args[1] == "shape")


_CELLS = ([2, 3], [-2, -1])
"""The dimensions of a map, as a mean is asked for over them."""

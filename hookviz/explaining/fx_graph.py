"""Trace a network's code into a `torch.fx` graph without data, and read the graph's nodes."""

import operator
from functools import partial
from typing import Any

from torch import fx, nn


def trace_graph(network: nn.Module) -> fx.Graph:
    """Trace the code as `torch.fx.symbolic_trace` does, safely beside other threads.

    That function changes the class of all modules while it traces, which breaks every pass in
    another thread. Here the layers of `network` itself get other forwards.

    Args:
        network: a private copy, which is unusable afterwards.
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

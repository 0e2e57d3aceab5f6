"""Refuse modules that can't be looked at, with why, and with what to do instead."""

from typing import NoReturn

import torch
from torch import Tensor, nn
from torch.jit._trace import TracedModule
from torch.nn.parameter import is_lazy

from hookviz.errors import ModelError
from hookviz.language.saying import say

_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized", "torch.nn.quantized")


def refuse_unsuitable(module: object) -> None:
    """Refuse a module whose layers no hook can see, or whose numbers are not there.

    Raises:
        ModelError: it is no module, or a scripted, traced, lazy, meta, sparse or quantised one; or
            a name in it has a dot. A scripted module among its own is a layer like another.
    """
    if not isinstance(module, nn.Module):
        raise ModelError(
            say("wrap takes a torch.nn.Module, not {name}.", name=type(module).__name__)
        )
    kind = type(module).__name__
    if isinstance(module, torch.jit.ScriptModule):
        made = "traced" if isinstance(module, TracedModule) else "scripted"
        name = getattr(module, "original_name", kind)
        raise ModelError(
            say(
                "{name} is a {made} TorchScript module, whose layers run outside of Python "
                "where no hook sees them; wrap the module that it was {made} from, or export "
                "that with torch.export.",
                name=name,
                made=made,
            )
        )
    for name, part in module.named_modules():
        names = [key for key, _ in part._modules.items()]  # a script's has no other way
        wrong = next((key for key in names if "." in key or not key), None)
        if wrong is not None:
            raise ModelError(
                say(
                    "{kind} has a module called {name!r}{container}: names with a dot, or without "
                    "a letter, stand for other layers; give it another name, then wrap it.",
                    kind=kind,
                    name=wrong,
                    container=say(" in {name}", name=name) if name else "",
                )
            )
        if type(part).__module__.startswith(_QUANTISED):
            _refuse_quantised(
                kind, say("layer {name!r}", name=name) if name else say("its one layer")
            )
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        _refuse_tensor(kind, name, tensor)


def _refuse_tensor(kind: str, name: str, tensor: Tensor) -> None:
    if is_lazy(tensor):
        raise ModelError(
            say(
                "{kind} is lazy: the shape of {name} is not known before its first pass; run "
                "the module once on an input, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.is_meta:
        raise ModelError(
            say(
                "{kind} is on the meta device, where {name} has a shape and no values; move "
                "it with to_empty(device='cpu') and load its state dict, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.layout != torch.strided or tensor.is_nested:
        raise ModelError(
            say(
                "{kind} has a sparse tensor in {name}, which layers do not compute with as "
                "with others; put {name}.to_dense() in its place, then wrap it.",
                kind=kind,
                name=name,
            )
        )
    if tensor.is_quantized:
        _refuse_quantised(kind, name)


def _refuse_quantised(kind: str, where: str) -> NoReturn:
    raise ModelError(
        say(
            "{kind} is quantised ({modules}): its layers put out whole numbers with a "
            "scale, not the numbers that are shown here; wrap the float module that it "
            "was made from.",
            kind=kind,
            modules=where,
        )
    )

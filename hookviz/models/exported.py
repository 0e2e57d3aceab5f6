"""Load a file that ``torch.export.save`` wrote as a module whose layers can have hooks.

The program as it is saved is one flat graph; `torch.export.unflatten` gives the layers back as
modules. Convolutions become torch's own, since everything here knows a conv layer by its class.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export.unflatten import InterpreterModule

from hookviz.errors import ModelError, shorten
from hookviz.language.saying import say
from hookviz.models.adapter import Example

SUFFIX = ".pt2"
_SCRIPTS = (".ts", ".torchscript", ".ptl")
_CONVS = {"conv1d": nn.Conv1d, "conv2d": nn.Conv2d, "conv3d": nn.Conv3d}


def is_file(name: str) -> bool:
    """Return whether a model is named by a file of a program, such as ``net.pt2``."""
    return Path(name).suffix.casefold() in (SUFFIX, *_SCRIPTS)


def load_exported(path: Path) -> tuple[nn.Module, Example | None]:
    """Load the module of an exported program, and the inputs that it was exported with, if kept.

    A program is code, so take only a file that you trust.

    Raises:
        ModelError: it can't be read, or is TorchScript.
    """
    if path.suffix.casefold() in _SCRIPTS:
        raise ModelError(
            say(
                "{path} is TorchScript, whose layers run outside of Python where no hook "
                "sees them; export the module that it was made from with torch.export.save, "
                "as .pt2.",
                path=path.name,
            )
        )
    if not path.is_file():
        raise ModelError(say("There is no file {path}.", path=shorten(str(path))))
    try:
        program = torch.export.load(path)
        module: nn.Module = torch.export.unflatten(program)
    except Exception as error:  # a damaged or foreign file can raise anything
        why = shorten(str(error).partition("\n")[0], 200) or type(error).__name__
        raise ModelError(
            say("{path} is no program of torch.export: {reason}", path=path.name, reason=why)
        ) from error
    for name, part in list(module.named_modules()):
        conv = _conv_of(part) if isinstance(part, InterpreterModule) else None
        if conv is not None:
            inside, _, last = name.rpartition(".")
            setattr(module.get_submodule(inside), last, conv)
    positional, named = program.example_inputs or ((), {})
    positional = tuple(  # one image of a batch; a program that takes only whole batches says so
        part[:1] if isinstance(part, Tensor) and part.ndim > 2 else part for part in positional
    )
    return module, (named if named and not positional else positional) or None


def _conv_of(part: InterpreterModule) -> nn.Module | None:
    """Return the convolution that a module's graph consists of, with its very weights, or None."""
    graph = part.graph
    calls = [node for node in graph.nodes if node.op == "call_function"]
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    if len(calls) != 1 or len(inputs) != 1:
        return None
    kind: Any = _CONVS.get(str(getattr(calls[0].target, "__name__", "")).partition(".")[0])
    if kind is None or calls[0].args[0] is not inputs[0]:
        return None
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    kwargs: dict[str, Any] = dict(zip(names, calls[0].args, strict=False)) | calls[0].kwargs
    weight = part.get_parameter(kwargs["weight"].target)
    bias = kwargs.get("bias")
    groups = kwargs.get("groups", 1)
    options: dict[str, Any] = {
        key: value if isinstance(value, str) else tuple(value)
        for key, value in kwargs.items()
        if key in ("stride", "padding", "dilation")
    }
    with torch.device("meta"):
        conv: nn.Module = kind(
            weight.shape[1] * groups,
            weight.shape[0],
            tuple(weight.shape[2:]),
            groups=groups,
            bias=bias is not None,
            **options,
        )
    conv.weight = weight
    if bias is not None:
        conv.bias = part.get_parameter(bias.target)
    return conv

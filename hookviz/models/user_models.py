"""Build and list the networks that whoever starts HookViz brings along: from Python or a file.

A browser can't name code: only the person at the keyboard names what runs here.

A file that ``torch.export.save`` wrote holds one flat graph; `torch.export.unflatten` gives the
layers back as modules. Convolutions become torch's own, since everything here knows a conv layer by
its class.
"""

import importlib
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.export.unflatten import InterpreterModule

from hookviz.errors import ModelError, nearest_names, shorten
from hookviz.language.saying import mark, say
from hookviz.models import hugging_face
from hookviz.models.loading import load_model
from hookviz.models.wrapping import Example, wrap
from hookviz.settings import settings
from hookviz.types import Model, ModelSpec

PROGRAM_SUFFIX = ".pt2"
_SCRIPTS = (".ts", ".torchscript", ".ptl")
_CONVS = {"conv1d": nn.Conv1d, "conv2d": nn.Conv2d, "conv3d": nn.Conv3d}


def is_program_file(name: str) -> bool:
    """Return whether a model is named by a file of a program, such as ``net.pt2``."""
    return Path(name).suffix.casefold() in (PROGRAM_SUFFIX, *_SCRIPTS)


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


FAMILY = mark("Your own")

_models: dict[str, Model] = {}
_lock = threading.Lock()


def add(model: Model) -> None:
    """List a model in the app of this process under its name."""
    with _lock:
        _models[model.name] = model


def remove(model: Model) -> None:
    """Take a model off the list again, unless another of its name has replaced it."""
    with _lock:
        if _models.get(model.name) is model:
            del _models[model.name]


def models() -> Mapping[str, Model]:
    """Return the models added so far, by name."""
    with _lock:
        return MappingProxyType(dict(_models))


def specs() -> tuple[ModelSpec, ...]:
    """Return an entry for each model added so far, and for each that the owner lists from a cache.

    A page loads no other network, not even one named by a link.
    """
    cached = hugging_face.cached_models() if settings().hugging_face else ()
    return (*map(spec, models().values()), *cached)


def is_own(spec: ModelSpec) -> bool:
    """Return whether an entry is one of `specs`, and none of the catalog's."""
    return spec.family in (FAMILY, hugging_face.FAMILY)


def spec(model: Model) -> ModelSpec:
    """Return a catalog entry for a model that is here already."""
    return ModelSpec(
        name=model.name,
        title=model.title,
        family=FAMILY,  # in English, as every family is: it is compared, and said where it is shown
        parameters=sum(parameter.numel() for parameter in model.network.parameters()),
        download_bytes=0,
        accuracy=float("nan"),
        trained_on="",
        min_size=model.min_size,
        on_disk=True,
    )


def add_from_settings() -> None:
    """Add the model that ``HOOKVIZ_MODEL`` names, if any; see `build`."""
    if settings().model:
        add(build(settings().model))


def build(path: str) -> Model:
    """Build the model that a ``package.module:factory``, a ``.pt2`` file or an ``hf:`` name means.

    The factory is called without arguments and returns a module or a `Model`; a module or a
    `Model` under that name will do as well. A ``.pt2`` file is code as well.

    Raises:
        ModelError: it can't be imported, has no such name, fails, or makes something else; or the
            file holds no exported program; or as `load_model` raises it, of ``hf:OWNER/NAME``.
    """
    if hugging_face.owns(path):
        return load_model(path)
    if is_program_file(path):
        file = Path(path).expanduser()
        program, example = load_exported(file)
        return wrap(program, name=file.stem, example=example)
    module_name, _, name = path.partition(":")
    if not (name.isidentifier() and all(module_name.split("."))):
        raise ModelError(
            say(
                "{path!r} is not of the form package.module:factory, such as nets:my_model.",
                path=shorten(path),
            )
        )
    try:
        module = importlib.import_module(module_name)
    # A person's own code runs here: it may raise anything, and sys.exit would end the program.
    except (Exception, SystemExit) as error:
        raise ModelError(
            say(
                "The module {module_name!r} can't be imported: {reason}.",
                module_name=module_name,
                reason=_reason(error),
            )
        ) from error
    attribute = getattr(module, name, None)
    if attribute is None:
        own = [known for known in vars(module) if not known.startswith("_")]
        near = nearest_names(name, own)
        hint = say(" Did you mean {names}?", names=" or ".join(map(repr, near))) if near else ""
        raise ModelError(
            say(
                "{module_name} has no {name!r}.{hint}",
                module_name=module_name,
                name=name,
                hint=hint,
            )
        )
    if callable(attribute) and not isinstance(attribute, nn.Module):
        try:
            attribute = attribute()
        except (Exception, SystemExit) as error:
            raise ModelError(
                say("{path} failed: {reason}.", path=path, reason=_reason(error))
            ) from error
    if isinstance(attribute, Model):
        return attribute
    if isinstance(attribute, nn.Module):
        return wrap(attribute, name=name)
    raise ModelError(
        say(
            "{path} makes a {name}, not a torch.nn.Module.",
            path=path,
            name=type(attribute).__name__,
        )
    )


def _reason(error: BaseException) -> str:
    """Return the exception of a person's own code in words, with its file and line."""
    message = shorten(" ".join(str(error).split()), 200).rstrip(".")
    if isinstance(error, SyntaxError | ImportError):
        return message or type(error).__name__  # it names the file, or the module, by itself
    frames = traceback.extract_tb(error.__traceback__)
    where = (
        say(
            " ({path}, line {line})",
            path=Path(frames[-1].filename).name,
            line=frames[-1].lineno,
        )
        if frames
        else ""
    )
    kind = type(error).__name__
    return f"{kind}: {message}{where}" if message else f"{kind}{where}"

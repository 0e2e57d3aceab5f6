"""Networks that whoever starts HookViz brings along: by name on the command line, or from Python.

A browser can't name code. What runs here is what the person at the keyboard named.
"""

import importlib
import threading
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from torch import nn

from hookviz.errors import ModelError, nearest_names, shorten
from hookviz.models.exported import is_file, load_exported
from hookviz.models.wrapping import wrap
from hookviz.settings import settings
from hookviz.types import Model, ModelSpec

FAMILY = "Your own"

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
    """The models added so far, by name."""
    with _lock:
        return MappingProxyType(dict(_models))


def spec(model: Model) -> ModelSpec:
    """A catalog entry for a model that is here already."""
    return ModelSpec(
        name=model.name,
        title=model.title,
        family=FAMILY,
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
    """The model that ``package.module:factory`` makes, or that a file of ``torch.export`` holds.

    The factory is called without arguments and returns a module or a `Model`; a module or a
    `Model` under that name will do as well. A ``.pt2`` file is code as well.

    Raises:
        ModelError: it can't be imported, has no such name, fails, or makes something else; or the
            file holds no exported program.
    """
    if is_file(path):
        file = Path(path).expanduser()
        program, example = load_exported(file)
        return wrap(program, name=file.stem, example=example)
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ModelError(f"{path!r} is not of the form package.module:factory.")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ModelError(f"The module {module_name!r} can't be imported: {error}.") from error
    made = getattr(module, name, None)
    if made is None:
        near = nearest_names(name, vars(module))
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ModelError(f"{module_name} has no {name!r}.{hint}")
    if callable(made) and not isinstance(made, nn.Module):
        try:
            made = made()
        except Exception as error:
            reason = shorten(str(error), 200) or type(error).__name__
            raise ModelError(f"{path} failed: {reason}") from error
    if isinstance(made, Model):
        return made
    if isinstance(made, nn.Module):
        return wrap(made, name=name)
    raise ModelError(f"{path} makes a {type(made).__name__}, not a torch.nn.Module.")

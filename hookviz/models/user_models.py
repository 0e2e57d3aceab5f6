"""Keep the networks that whoever starts HookViz brings along, by name or from Python.

A browser can't name code. What runs here is what the person at the keyboard named.
"""

import importlib
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from torch import nn

from hookviz.errors import ModelError, nearest_names, shorten
from hookviz.language.saying import mark, say
from hookviz.models import hugging_face
from hookviz.models.exported import is_file, load_exported
from hookviz.models.loading import load_model
from hookviz.models.wrapping import wrap
from hookviz.settings import settings
from hookviz.types import Model, ModelSpec

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

    What is not here, no page loads, whatever a link names.
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
    if is_file(path):
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
    """Say what a person's own code raised, and in which line of which file."""
    said = shorten(" ".join(str(error).split()), 200).rstrip(".")
    if isinstance(error, SyntaxError | ImportError):
        return said or type(error).__name__  # it names the file, or the module, by itself
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
    return f"{kind}: {said}{where}" if said else f"{kind}{where}"

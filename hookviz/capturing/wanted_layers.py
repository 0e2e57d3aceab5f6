"""Choose the layers to capture: names of what runs, or patterns, types, modules and predicates."""

import re
from typing import Any

from torch import nn

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError, shorten
from hookviz.hooking.modules import named_modules, without_wrappers
from hookviz.hooking.selection import PATTERN, Layers, select, several
from hookviz.language.saying import say
from hookviz.types import Model


def wanted_layers(model: Model, seen: LayerTrace, layers: Layers) -> tuple[str, ...]:
    """Return the layers asked for, once each, in order of execution.

    Args:
        model: whose layers.
        seen: what a pass over the input runs.
        layers: names of layers and of functions that the code calls, patterns, types, modules or
            predicates, as `hookviz.hooking.selection.select` takes them; None for every conv layer.
            A name has to be one that runs; of what else chooses, those that run are taken.

    Raises:
        UnknownLayerError: there is no layer of that name, or none that a pattern or type chooses.
        ModelError: a layer asked for by its name is not run, or none that is chosen is.
        SettingError: something chooses no layers.
    """
    if layers is None:
        return tuple(layer.name for layer in seen.convs)
    asked = set[str]()
    for each in several(layers):
        is_text = isinstance(each, str)
        selector = without_wrappers(each, seen.recordable) if is_text else each
        if isinstance(selector, str) and selector in seen.recordable:
            asked.add(selector)
        elif isinstance(selector, str) and not PATTERN & set(selector):
            raise _not_run(model, seen, selector)
        else:
            asked |= _chosen(model, seen, selector)
    return tuple(name for name in seen.recordable if name in asked)


def layers_by_selector(model: Model, trace: LayerTrace, layers: Layers) -> list[tuple[str, ...]]:
    """Return the layers that each selector chooses, with the errors of `wanted_layers`."""
    return [wanted_layers(model, trace, [each]) for each in several(layers)]


def _not_run(model: Model, seen: LayerTrace, name: str) -> HookVizError:
    """Return the error for a name that no layer that runs has."""
    if name in dict(named_modules(model.network, remove_duplicate=False)):
        return ModelError(
            say(
                "Layer {name!r} of {model} is not run by a forward pass, or it goes by "
                "another name there.",
                name=name,
                model=model.title,
            )
        )
    return UnknownLayerError(say("layer in {model}", model=model.title), name, seen.recordable)


def _chosen(model: Model, seen: LayerTrace, selector: Any) -> set[str]:
    """Return the layers that run among those that a pattern, type, module or predicate chooses."""
    if not (isinstance(selector, str | re.Pattern | nn.Module) or callable(selector)):
        raise SettingError(
            say(
                "layers={layers}: a layer goes by its name, such as {first!r}, not by a "
                "{name}; list_layers tells the names.",
                layers=shorten(repr(selector)),
                first=next(iter(seen.calls), "conv1"),
                name=type(selector).__name__,
            )
        )
    chosen = select(model, selector)
    run = seen.recordable.keys() & set(chosen)
    if not run:
        raise ModelError(
            say(
                "A forward pass of {model} runs none of the layers that {layers} chooses, such as "
                "{name!r}.",
                model=model.title,
                layers=shorten(repr(selector)),
                name=chosen[0],
            )
        )
    return set(run)

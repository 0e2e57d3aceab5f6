"""Choose the layers to capture: by name, pattern, type, module or predicate.

Layers whose outputs are no tensors with values are refused in a sentence.
"""

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


def check_can_intervene(model: Model, trace: LayerTrace, layer: str) -> None:
    """Refuse a layer that does not put out an ordinary tensor, which a pass can be changed at.

    Raises:
        ModelError: it is sparse, quantised, nested or under `torch.vmap`; a layer is named whose
            output is not.
    """
    kind = trace.unlike.get(layer)
    if kind is None:
        return
    others = [info.name for info in trace.convs if info.name not in trace.unlike]
    hint = say(" Layer {layer!r} puts out an ordinary one.", layer=others[-1]) if others else ""
    raise ModelError(
        say(
            "Layer {layer!r} of {model} puts out {kind}: its numbers can be captured, and a pass "
            "can't be changed there or gone back through.{hint}",
            layer=layer,
            model=model.title,
            kind=say(kind),
            hint=hint,
        )
    )


def no_cells_error(model: Model, layer: str) -> ModelError:
    """Return the error for a layer whose values are those of no cells that anybody knows."""
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out no maps, or nobody knows which of its axes "
            "are rows and columns, so its values are no cells.",
            layer=layer,
            model=model.title,
        )
    )


def meta_output_error(model: Model, layer: str | None) -> ModelError:
    """Return the error for a layer that puts out a shape alone."""
    return ModelError(
        say(
            "Layer {name!r} of {model} puts out a tensor on the meta device, which has a shape and "
            "no values to look at.",
            name=layer,
            model=model.title,
        )
    )

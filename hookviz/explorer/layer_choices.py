"""Answer which layers there are, which one is looked at, and what can be chosen of how."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.dimensions import middle_slice, slices
from hookviz.drawing.scales import SCALES
from hookviz.errors import HookVizError
from hookviz.explorer.layers import Looked, Steps, maps, resolve, steps_of
from hookviz.explorer.look import sorts, tops
from hookviz.explorer.pair import pinned_pair
from hookviz.explorer.patches import answer_choices, atlas_of_step
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import AUTOMATIC, View
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.types import ActivationKey, LayerInfo

_Options = list[dict[str, str]]


def answer_layers(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the layers, the one that a view looks at, and what can be chosen around it.

    Raises:
        HookVizError: the network runs no layer that puts out maps.
    """
    looked = resolve(subject, view)
    layer, trace = looked.layer, subject.trace
    channels = layer.output_shape[0] if layer.output_shape else 1
    return Answer(
        {
            "listed": looked.listed,
            "hasUsual": bool(trace.usual),
            "hasBlocks": len(trace.usual) > len(trace.convs),
            "layer": layer.name,
            "options": [{"name": each.name, "number": each.index + 1} for each in looked.layers],
            "step": str(looked.step),
            "steps": None if subject.offered else _step_choice(steps_of(trace, layer), looked.step),
            "warning": looked.warning,
            "patches": _patches(subject, str(looked.step)),
            "sorts": _options(sorts(alike=_is_alike(subject, looked))),
            "tops": _options(tops(channels)),
            "scales": _options((AUTOMATIC, *SCALES)),
            "colourMaps": _options((AUTOMATIC, *COLORMAPS)),
            "isUsual": any(each.name == layer.name for each in trace.usual),
            "isConv": any(each.name == layer.name for each in trace.convs),
            "hasWeights": any(each.name == layer.name for each in trace.convs_and_linears),
            "shape": list(layer.output_shape),
            "moves": bool(subject.model_input.frames),
            "frames": slices(layer.output_shape),
            "frame": middle_slice(layer.output_shape, looked.frame),
            "classes": class_names(subject, layer),
        }
    )


def class_names(subject: Subject, layer: LayerInfo) -> list[str]:
    """Return the class of each channel of the last conv layer, or one after it, with one for each.

    Empty of any other layer.
    """
    categories, trace = subject.model.categories, subject.trace
    if layer.output_shape[:1] != (len(categories),):
        return []
    returned = {name: at for at, name in enumerate(trace.calls)}
    last = trace.convs[-1].name if trace.convs else layer.name
    if returned.get(layer.name, -1) < returned[last]:
        return []
    return [class_label(number, categories) for number in range(len(categories))]


def _step_choice(steps: Steps, chosen: ActivationKey) -> dict[str, Any] | None:
    """Describe what can be shown of the layer; None where that is one thing."""
    if len(steps.outputs) < 2:
        return None
    follows = steps.word == "after"
    return {
        "word": steps.word,
        "label": say("What is shown") if follows else say("Which output"),
        "hint": say("The layer's own output, or what the steps after it made of that.")
        if follows
        else say("This layer runs several times in a pass, or puts out several tensors."),
        "chosen": next(word for word, step in steps.outputs.items() if step == chosen),
        "options": [{"value": word, "says": _said(word)} for word in steps.outputs],
    }


def _said(word: str) -> str:
    """Return an output's name in the language that is spoken; links have it in English."""
    call = re.fullmatch(r"call (\d+)(.*)", word)
    return say("call {number}", number=int(call[1])) + call[2] if call else say(word)


def _patches(subject: Subject, step: str) -> dict[str, Any] | None:
    """Describe of which channels the atlas can show what excites them; None where of none."""
    atlas = atlas_of_step(subject, step)
    if atlas is None:
        return None
    return {"answers": [{"value": a, "says": says} for a, says in answer_choices(subject, atlas)]}


def _is_alike(subject: Subject, looked: Looked) -> bool:
    """Return whether what is pinned has the shape of what is looked at."""
    if subject.pinned is None:
        return False
    try:
        pair = pinned_pair(subject, str(looked.step), maps(subject, looked), looked.frame)
    except HookVizError:  # which the tiles say
        return False
    return pair is not None and pair.alike


def _options(words: Iterable[str]) -> _Options:
    return [{"value": word, "says": say(word)} for word in words]

"""Answer with the layers of a network, as a list with the choices for a view, and as a tree.

The tree has each layer's facts and its mean activation as a small picture.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.dimensions import middle_slice, slices
from hookviz.drawing.grid import make_grid
from hookviz.drawing.pictures import Resampling, resize
from hookviz.drawing.scales import SCALES
from hookviz.errors import HookVizError
from hookviz.explaining.layers.layer_description import amount, field_text, kernel_text
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.explorer.excites import answer_choices, atlas_of_step
from hookviz.explorer.layers import ResolvedView, Steps, cached_capture, maps, resolve, steps_of
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.rendering import pinned_pair, sorts, tops
from hookviz.explorer.subject import Subject, between_layers
from hookviz.explorer.view import AUTOMATIC, View
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.types import ActivationKey, LayerInfo, Model
from hookviz.wording import times

_Options = list[dict[str, str]]


def answer_layers(
    subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Return the layers, the one that a view shows, and the choices around it.

    Raises:
        HookVizError: the network runs no layer that puts out maps.
    """
    resolved = resolve(subject, view)
    layer, trace = resolved.layer, subject.trace
    channels = layer.output_shape[0] if layer.output_shape else 1
    atlas = atlas_of_step(subject, str(resolved.step))
    return Answer(
        {
            "listed": resolved.listed,
            "hasUsual": bool(trace.usual),
            "hasBlocks": len(trace.usual) > len(trace.convs),
            "layer": layer.name,
            "options": [{"name": each.name, "number": each.index + 1} for each in resolved.layers],
            "step": str(resolved.step),
            "steps": None
            if subject.offered
            else _step_choice(steps_of(trace, layer), resolved.step),
            "warning": resolved.warning,
            "patches": None
            if atlas is None
            else {"answers": [{"value": a, "says": b} for a, b in answer_choices(subject, atlas)]},
            "sorts": _options(sorts(alike=_has_pair_of_one_shape(subject, resolved))),
            "tops": _options(tops(channels)),
            "scales": _options((AUTOMATIC, *SCALES)),
            "colourMaps": _options((AUTOMATIC, *COLORMAPS)),
            "isUsual": any(each.name == layer.name for each in trace.usual),
            "isConv": any(each.name == layer.name for each in trace.convs),
            "hasWeights": any(each.name == layer.name for each in trace.convs_and_linears),
            "shape": list(layer.output_shape),
            "moves": bool(subject.model_input.frames),
            "frames": slices(layer.output_shape),
            "frame": middle_slice(layer.output_shape, resolved.frame),
            "classes": class_names(subject, layer),
        }
    )


def class_names(subject: Subject, layer: LayerInfo) -> list[str]:
    """Return the class of each channel, where a layer from the last conv layer on has one for each.

    Empty for any other layer.
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
    """Describe the outputs of the layer to choose from; None where there is only one."""
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
        "options": [{"value": word, "says": _translated_output(word)} for word in steps.outputs],
    }


def _translated_output(word: str) -> str:
    """Return an output's name in the current language; links have it in English."""
    call = re.fullmatch(r"call (\d+)(.*)", word)
    return say("call {number}", number=int(call[1])) + call[2] if call else say(word)


def _has_pair_of_one_shape(subject: Subject, resolved: ResolvedView) -> bool:
    """Return whether the maps pinned as A have the shape of the layer's maps."""
    if subject.pinned is None:
        return False
    try:
        pair = pinned_pair(subject, str(resolved.step), maps(subject, resolved), resolved.frame)
    except HookVizError:  # which the tiles say
        return False
    return pair is not None and pair.alike


def _options(words: Iterable[str]) -> _Options:
    return [{"value": word, "says": say(word)} for word in words]


_Row = dict[str, Any]
_Rows = list[tuple[LayerInfo, _Row]]


class Previews(NamedTuple):
    """Small pictures of layers, side by side in one picture.

    Attributes:
        picture: the one picture, as a URL of its data.
        size: its width and height in pixels.
        side: of each small picture.
        corners: where in it the one of each layer begins, by the layer's name.
    """

    picture: str
    size: tuple[int, int]
    side: int
    corners: dict[str, tuple[int, int]]


def layer_tree(
    model: Model,
    layers: Sequence[LayerInfo],
    fields: Mapping[str, ReceptiveField],
    previews: Previews | None,
    *,
    chosen: str,
    by_block: bool,
) -> dict[str, Any]:
    """Describe the layers by stage or, `by_block`, in the blocks that they are parts of.

    Args:
        model: whose layers.
        layers: those on offer, in order of execution.
        fields: receptive fields by layer; of those that are missing it says so.
        previews: their small pictures, if there are any.
        chosen: name of the layer that the view shows.
        by_block: whether blocks are among the layers, and have their parts inside.
    """
    rows = [(layer, _row(layer, fields.get(layer.name))) for layer in layers]
    return {
        "network": f"{model.name}/{model.digest}/{layers[0].input_shape}/{len(layers)}",
        "parts": _nested(rows) if by_block else _staged(rows),
        "previews": previews and previews._asdict(),
        "chosen": chosen,
    }


def _staged(rows: _Rows) -> list[_Row]:
    """Put the rows into stages, which have a name and `parts`, and are no layers themselves."""
    stages: dict[str, list[_Row]] = {}
    for layer, row in rows:
        short = layer.name.removeprefix(f"{layer.stage}.") or layer.name
        stages.setdefault(layer.stage, []).append(row | {"short": short})
    return [{"stage": name, "parts": parts} for name, parts in stages.items()]


def _nested(rows: _Rows) -> list[_Row]:
    """Put each row into the `parts` of the innermost block's row that it is in, if any."""
    by_name = {layer.name: row for layer, row in rows}
    top: list[_Row] = []
    for name, row in by_name.items():
        ends = (end for end in range(len(name) - 1, 0, -1) if name[end] == ".")
        block = next((name[:end] for end in ends if name[:end] in by_name), None)
        row["short"] = name if block is None else name.removeprefix(f"{block}.")
        (top if block is None else by_name[block].setdefault("parts", [])).append(row)
    return top


def _row(layer: LayerInfo, field: ReceptiveField | None) -> _Row:
    parameters, work = amount(layer.parameters), amount(layer.multiply_adds)
    facts = [say("{count} parameters", count=parameters)] * bool(layer.parameters)
    facts += [say("{amount} multiply-adds", amount=work)] * bool(layer.multiply_adds)
    sees = field_text(field)
    return {
        "name": layer.name,
        "number": layer.index + 1,
        "shape": f"{kernel_text(layer)} · {times(layer.output_shape)}",
        "work": " · ".join((sees, *facts)),
        "title": f"{layer.index + 1} {layer.name}: {', '.join((kernel_text(layer), *facts, sees))}",
    }


_SIDE_PX = 32  # of a small picture


def answer_tree(subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report) -> Answer:
    """Return the layers by stage, or in the blocks that they are parts of, with small pictures.

    The first answer about a network takes a while.

    Raises:
        HookVizError: the network runs no layer that puts out maps, or the pass can't be run.
    """
    resolved = resolve(subject, view)
    layers, of_all = resolved.layers, resolved.listed == "maps"
    names = {each.name for each in layers}
    has_blocks = any(name.rpartition(".")[0] in names for name in names)
    return Answer(
        layer_tree(
            subject.model,
            layers,
            subject.fields(),
            _previews(subject, of_all=of_all),
            chosen=resolved.layer.name,
            by_block=has_blocks or of_all,
        )
    )


def _previews(subject: Subject, *, of_all: bool) -> Previews | None:
    """Return the mean of each conv layer's first maps, or `of_all` layers with maps.

    Each is on its own scale; of a subject with offered layers only these are drawn. None where the
    cache can't hold all layers: they would be computed at every question.
    """
    model, model_input, cache = subject.model, subject.model_input, subject.cache
    trace, offered = subject.trace, {layer.name for layer in subject.offered}
    listed = (layer.name for layer in (trace.shown if of_all else trace.usual))
    names = [name for name in listed if not offered or name in offered]
    if not names:
        return None
    key = ("previews", *subject.key, *names)
    cached: Previews | None = cache.get(key)
    if cached is not None:
        return cached
    if sum(trace.nbytes[name] for name in names) > cache.limit // 2:
        return _previews(subject, of_all=False) if of_all else None
    capture = cached_capture(subject, names, logits=False)
    if capture is None:
        with subject.take_turn(model.title, "previews", "") as run:
            capture = engine.capture(
                model,
                model_input,
                names,
                logits=False,
                cache=cache,
                progress=between_layers(run, model),
            )
    first = [str(trace.shown_outputs[name][0]) for name in names]
    small = np.stack([_small(capture[address].values.numpy()) for address in first])
    grid = make_grid(small, scale="channel", aspect=1.0)
    geometry = grid.sprite_geometry
    pictures = Previews(
        picture=data_url(grid.sprite),
        size=(geometry.width, geometry.height),
        side=geometry.tile_width,
        corners={name: geometry.box(index)[:2] for index, name in enumerate(names)},
    )
    cache.put(key, pictures, len(pictures.picture))
    return pictures


def _small(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean over all but the last two dimensions, resized to a small square."""
    if values.ndim < 2:
        return np.zeros((_SIDE_PX, _SIDE_PX), np.float32)
    mean = values.reshape(-1, *values.shape[-2:]).mean(0, dtype=np.float32)
    mean = np.nan_to_num(mean, nan=0.0, posinf=0.0, neginf=0.0)
    method = Resampling.BOX if min(mean.shape) > _SIDE_PX else Resampling.NEAREST
    return resize(mean, (_SIDE_PX, _SIDE_PX), method)

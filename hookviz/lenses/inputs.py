"""Show what one call of a layer takes in beside what it puts out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.drawing.colormaps import quantise
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.panels import GridPanel, Panel, TablePanel, TextPanel
from hookviz.drawing.scales import Limits
from hookviz.errors import HookVizError, ModelError
from hookviz.explaining.layers.layer_io import Copies, LayerIO, layer_io, tensor_maps
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import private_replica
from hookviz.language.saying import joined, mark, say, sentences
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, OneOf, RealNumber, WholeNumber
from hookviz.types import UNKNOWN, ActivationKey, LayerInfo, Layout
from hookviz.wording import number, times

_CHANGES: dict[str, Callable[..., Tensor]] = {mark("plus"): torch.add, mark("times"): torch.mul}
_MOST_GRIDS = 2  # drawn per side; further tensors are rows of the table alone
_HEAD = (
    mark("tensor"),
    mark("shape"),
    mark("lowest"),
    mark("mean"),
    mark("highest"),
    mark("zeros"),
)


@dataclass(frozen=True, eq=False, slots=True)
class _Part:
    """One tensor that a layer took in or put out, copied at that moment.

    Attributes:
        name: ``"input"``, ``"input 0"``, ``"output"`` or what the path to it says.
        shape: as the network has it, the batch included.
        values: float32 on the CPU, of that shape.
        maps: how it is drawn, ``(C, H, W)``; None where there is nothing to draw.
        read: how the shape was read, where that needs saying.
    """

    name: str
    shape: tuple[int, ...]
    values: NDArray[np.float32]
    maps: NDArray[np.float32] | None
    read: str


def run(
    subject: Subject, *, layer: str, call: int, scale: str, change: str, amount: float
) -> LensOutput:
    """Show one call of a layer, from 1: its inputs, copied before it ran, beside its outputs.

    Colours are shared where the values mean the same on both sides: by default for layers without
    weights, such as activations and pooling. Statistics are over all finite values; "zeros" is the
    share of values that are exactly 0. With `change` a pre-hook hands the call its first input plus
    or times `amount`, and that is what is shown.

    Raises:
        SettingError: the layer has no such call.
        ModelError: the network can't take this input.
        HookVizError: the layer took in and put out nothing that can be drawn.
    """
    info = next(info for info in subject.trace.every if info.name == layer)
    tensors = layer_io(subject.model, subject.model_input, layer, call - 1, subject.progress)
    said = []
    if change != "none":
        tensors, words = _change_input(subject, layer, call, tensors, change=change, amount=amount)
        said.append(TextPanel(words, "note"))
    module = subject.model.network.get_submodule(layer)
    known = subject.trace.layouts
    layouts = {
        path: known.get(ActivationKey(layer, call - 1, path), UNKNOWN)
        for path, _ in tensors.outputs
    }
    by_shape = {tuple(tensor.shape): layouts[path] for path, tensor in tensors.outputs}
    if tensors.inputs:
        first = tuple(tensors.inputs[0][1].shape)
        by_shape[first] = subject.trace.taken.get(ActivationKey(layer, call - 1), UNKNOWN)
    input_layouts = {
        path: by_shape.get(tuple(each.shape), UNKNOWN) for path, each in tensors.inputs
    }
    before = tuple(_parts("input", tensors.inputs, input_layouts))
    after = tuple(_parts("output", tensors.outputs, layouts))
    grids = _grids(before, after, shared=_is_shared(scale, module))
    if not grids:
        raise HookVizError(
            say(
                "{layer} of {model} neither takes in nor puts out numbers that can be drawn. "
                "{other_layer} does.",
                layer=layer,
                model=subject.model.title,
                other_layer=subject.convs[0].name if subject.convs else say("A conv layer"),
            )
        )
    table = TablePanel(say("In numbers"), _HEAD, tuple(map(_row, (*before, *after))))
    values = {part.name.replace(" ", "_"): part.values for part in (*before, *after)}
    summary = TextPanel(_summarize(info, tensors, before, after), "answer")
    return (summary, *said, *grids, table), values


def _change_input(
    subject: Subject, layer: str, call: int, plain: LayerIO, *, change: str, amount: float
) -> tuple[LayerIO, str]:
    """Return the call with another input, and what comes of it, there and in the scores."""
    if not plain.inputs or plain.inputs[0][0] != ("0",) or plain.inputs[0][1].is_complex():
        raise HookVizError(
            say("The first input of {layer} is no tensor of numbers to change.", layer=layer)
        )

    def changed(given: Tensor) -> Tensor:
        return _CHANGES[change](given, amount).to(given.dtype)

    run_on = (subject.model, subject.model_input, layer, call - 1)
    tensors = layer_io(*run_on, subject.progress, change=changed)
    moved = [
        (one - other).abs().double()
        for (_, one), (_, other) in zip(plain.outputs, tensors.outputs, strict=False)
        if one.shape == other.shape and one.numel()
    ]
    words = say(
        "A pre-hook hands {layer} its input {change} {amount}.",
        layer=layer,
        change=say(change),
        amount=number(amount),
    )
    if moved:
        every = torch.cat([each.flatten() for each in moved])
        words += say(
            " {share} of what it puts out changes, by {largest} at most.",
            share=_share(float((every > 0).double().mean())),
            largest=number(float(every.max())),
        )
    return tensors, words + _verdict(subject, layer, call, changed)


def _verdict(subject: Subject, layer: str, call: int, changed: Callable[[Tensor], Tensor]) -> str:
    """Say what becomes of the likeliest class; nothing where there are no scores."""
    try:
        answer = subject.answer
    except ModelError:  # it says that there is none
        return ""

    def hand_over(given: hooks.Call) -> Tensor | None:
        return changed(given.inputs[0]) if given.index == call - 1 else None

    images = subject.model_input.tensor
    with private_replica(subject.model) as replica, hooks.before(replica, [layer], hand_over):
        scores = class_scores(subject.model, replica, images).values[0].cpu().double()
    reading = answer.reading
    before, after = reading.values(answer.scores.double()), reading.values(scores)
    old, new = int(before.argmax()), int(after.argmax())
    return say(
        " The network then says {new_label} ({new_share}); without it says {label} ({share}).",
        new_label=subject.label(new),
        new_share=reading.text(float(after[new])),
        label=subject.label(old),
        share=reading.text(float(before[old])),
    )


def _parts(
    side: str, tensors: Copies, layouts: Mapping[tuple[str, ...], Layout]
) -> Iterator[_Part]:
    for path, tensor in tensors:
        shown = path if side == "output" else path[0 if len(tensors) > 1 else 1 :]
        real = tensor.abs() if tensor.is_complex() else tensor
        values: NDArray[np.float32] = real.float().numpy()
        maps, read = tensor_maps(values, layouts[path])
        yield _Part(" ".join((side, *shown)), tuple(tensor.shape), values, maps, read)


def _is_shared(scale: str, module: nn.Module) -> bool:
    has_weights = any(True for _ in module.parameters())
    return scale == "shared" or (scale == "automatic" and not has_weights)


def _grids(before: Sequence[_Part], after: Sequence[_Part], *, shared: bool) -> tuple[Panel, ...]:
    """Draw a grid per drawable tensor, with the same colours for the same values where `shared`."""
    parts = [
        part
        for side in (before, after)
        for part in [part for part in side if part.maps is not None][:_MOST_GRIDS]
    ]
    grids = [_grid(part) for part in parts]
    ends = [(grid.stats.lowest, grid.stats.highest) for grid in grids]
    # a tensor with one value everywhere has no colours to share, and its legend names its value
    together = shared and len(grids) > 1 and all(low < high for low, high in ends)
    if together:
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        grids = [_rescaled(_grid(part, signed=low < 0), low, high, part) for part in parts]
    same = say("Input and output have the same colours for the same values.") if together else ""
    return tuple(
        GridPanel(
            say("{part}: {shape}", part=_title(part), shape=times(part.shape)),
            grid,
            sentences(say("Read as {reading}.", reading=part.read) if part.read else "", same),
        )
        for part, grid in zip(parts, grids, strict=True)
    )


def _title(part: _Part) -> str:
    """Return a tensor's title in the chosen language; `_Part.name` names its numbers."""
    side, _, path = part.name.partition(" ")
    said = say("Input") if side == "input" else say("Output")
    return f"{said} {path}".rstrip()


def _grid(part: _Part, *, signed: bool | None = None) -> Grid:
    assert part.maps is not None
    if signed is None:
        signed = bool(np.nanmin(part.maps, initial=0) < 0)
    return make_grid(part.maps, scale="symmetric" if signed else "layer", title=_title(part))


def _rescaled(grid: Grid, low: float, high: float, part: _Part) -> Grid:
    """Recolour the grid: `low` and `high` get its end colours, and 0 the middle one if signed."""
    assert part.maps is not None
    if grid.limits.scale == "symmetric":
        high = max(-low, high)
        low = -high
    count = len(grid.stats)
    ends = Limits(grid.limits.scale, np.full(count, low), np.full(count, high))
    levels = quantise(part.maps, ends.low, ends.high)
    levels.flags.writeable = False
    return replace(grid, limits=ends, levels=levels)


def _row(part: _Part) -> tuple[str | int | float, ...]:
    finite = part.values[np.isfinite(part.values)]
    shape = times(part.shape) or say("one number")
    if not finite.size:
        return (part.name, shape, "–", "–", "–", "–")
    return (
        part.name,
        shape,
        number(float(finite.min())),
        number(float(finite.mean(dtype=np.float64))),
        number(float(finite.max())),
        _share(float(np.mean(part.values == 0))),
    )


def _summarize(
    info: LayerInfo, tensors: LayerIO, before: Sequence[_Part], after: Sequence[_Part]
) -> str:
    takes, gives = (
        " and ".join(times(part.shape) or say("one number") for part in side) or say("no tensor")
        for side in (before, after)
    )
    says = [
        say(
            "{layer} ({kind}) takes in {inputs} and puts out {outputs}.",
            layer=info.name,
            kind=info.kind,
            inputs=takes,
            outputs=gives,
        )
    ]
    if len(before) == len(after) == 1 and before[0].shape == after[0].shape:
        same = (before[0].values == after[0].values) | (
            np.isnan(before[0].values) & np.isnan(after[0].values)
        )
        changed = 1 - float(np.mean(same)) if same.size else 0.0
        says.append(
            say("{share} of the values come out changed.", share=_share(changed))
            if changed
            else say("Every value comes out as it went in.")
        )
    if tensors.in_place:
        says.append(say("It works in place: it writes its output over its input."))
    if tensors.others:
        others = joined(tensors.others)
        says.append(say("It is also given {others}, which can't be drawn.", others=others))
    return sentences(*says)


def _share(part: float) -> str:
    return say("{share} %", share=number(100 * part))


def script(facts: LensFacts) -> LensCode:
    """Write one call of the layer, its tensors copied at that moment."""
    call = {"call": "counted from 1"} if facts.chosen["call"] > 1 else {}
    which = "CALL - 1" if call else "0"
    change = facts.chosen["change"]
    amount = {"amount": "of the change"} if change != "none" else {}
    lines = constants(facts, layer="", **call, **amount)
    handed, returned = "", ""
    if amount:
        sign = {"plus": "+", "times": "*"}[change]
        handed = _HANDED.format(call=which, sign=sign)
        returned = "\n    return inputs, named"
    if set(facts.values) == {"input", "output"}:
        one = _ONE_TENSOR.format(handed=handed, returned=returned.removesuffix(", named"))
        return in_order(lines, one), {
            "input": f"taken_in[{which}].float().numpy()",
            "output": f"put_out[{which}].float().numpy()",
        }
    several = sum(name.partition("_")[0] == "input" for name in facts.values) > 1
    code = _TENSORS.format(
        path="path" if several else "path[1:]", call=which, handed=handed, returned=returned
    )
    return in_order(lines, code), {
        name: f'tensors["{name}"].float().numpy()' for name in facts.values
    }


_HANDED = """\
    if len(taken_in) == {call}:  # what a pre-hook returns takes the place of the inputs
        inputs = (inputs[0] {sign} AMOUNT, *inputs[1:])
"""
_ONE_TENSOR = """\
taken_in, put_out = [], []


def before(module, inputs):
{handed}    taken_in.append(inputs[0].clone())  # a copy: the layer may work in place{returned}


def after(module, inputs, output):
    put_out.append(output.clone())  # so may the next one


layer = model.get_submodule(LAYER)
layer.register_forward_pre_hook(before)
layer.register_forward_hook(after)
with torch.no_grad():
    model(batch)
# Of the only image, with its batch: (1, channels, height, width)."""
_TENSORS = '''

def tensors_in(value, path=()):
    """Copies of all tensors inside tuples, lists and dicts, by where they are."""
    if isinstance(value, torch.Tensor):
        return {{path: value.clone()}}
    if isinstance(value, dict):
        items = value.items()
    else:
        items = enumerate(value) if isinstance(value, (tuple, list)) else ()
    tensors = {{}}
    for key, part in items:
        tensors |= tensors_in(part, (*path, str(key)))
    return tensors


taken_in, put_out = [], []


def before(module, inputs, named):
{handed}    # Copied now: the layer may work in place.
    taken_in.append(tensors_in((*inputs, *named.values()))){returned}


def after(module, inputs, output):
    put_out.append(tensors_in(output))


layer = model.get_submodule(LAYER)
layer.register_forward_pre_hook(before, with_kwargs=True)
layer.register_forward_hook(after)
with torch.no_grad():
    model(batch)
tensors = {{"_".join(("input", *{path})): each for path, each in taken_in[{call}].items()}}
tensors |= {{"_".join(("output", *path)): each for path, each in put_out[{call}].items()}}'''


LENS = Lens(
    slug="inputs",
    title=mark("Input and output"),
    question=mark("What does a layer change?"),
    sentence=mark("What one layer takes in beside what it puts out, and what it changes."),
    group=SEES,
    run=run,
    script=script,
    parameters=(
        LayerChoice(kind="any", default="first"),
        WholeNumber(
            name="call",
            label=mark("Call"),
            help=mark("Which run of a layer that runs more than once, from 1."),
            low=1,
            high=9_999,
            default=1,
        ),
        OneOf(
            name="scale",
            label=mark("Colours"),
            choices=(mark("automatic"), mark("shared"), mark("own")),
            help=mark("Whether input and output have the same colours; layers without weights do."),
        ),
        OneOf(
            name="change",
            label=mark("Change the input"),
            choices=(mark("none"), *_CHANGES),
            help=mark("What a pre-hook hands the layer in place of its first input."),
        ),
        RealNumber(
            name="amount",
            label=mark("By"),
            matters_for=("change", tuple(_CHANGES)),
            low=-1e6,
            high=1e6,
            default=2,
        ),
    ),
)

"""Slide a kernel whose numbers can be edited over the image in grey.

The page draws the kernel with its presets, stride and padding, its walk over the image, and the map
that it makes.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz import shallow_json
from hookviz.errors import HookVizError
from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.explorer.kernel import kernel_walk
from hookviz.language.saying import mark, say
from hookviz.lessons.kernels import (
    PRESETS,
    TITLES,
    ChangedWeight,
    Kernel,
    changed_weight,
    effect_words,
    kernel_call,
    output_length,
)
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.pictures import grey_of
from hookviz.models.derived_models import tensors_of
from hookviz.ui.components.files import mount
from hookviz.ui.lessons.picks import pick, picked, remember_shown, slide
from hookviz.ui.state import Cell
from hookviz.ui.theme import diverging, sign_words

SIDE = 96
"""Cells on a side that the grey picture has at most, so that each of them can be seen."""
_OWN = "layer"
"""What `kernel` is for a kernel that the network has learned."""
_SHOWN_SIDE = "side"
"""Among the options how many numbers on a side the shown kernel has; a lesson's file has none."""
_EMPTY = "empty"
"""What `map` is where the map is to be filled by playing."""
LARGEST = 7
"""Numbers on a side that can be edited at most."""
_EDITS = {
    "yes": ("numbers", "moves"),
    "numbers": ("numbers",),
    "moves": ("moves",),
    "no": (),
}
"""What can be changed by each value of `edit`: a kernel's numbers, and how it moves."""


def own_kernels(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the first conv layer's name, and each of its kernels as it acts on a grey picture.

    In grey all colours of a pixel are the same number, so that a kernel's slices act as their sum.

    Raises:
        HookVizError: it has no such kernels.
    """
    first = scene.trace.convs[0] if scene.trace.convs else None
    weight = None
    if first is not None and first.input_shape[0] == 3 and first.groups == 1:
        weight = tensors_of(scene.model).get(f"{first.name}.weight")
    if (
        first is None
        or weight is None
        or weight.ndim != 4
        or weight.shape[2] != weight.shape[3]
        or weight.shape[2] > LARGEST
    ):
        raise HookVizError(
            say(
                "The first layer of {model} has no kernels of up to {count} numbers on a side that "
                "see colours.",
                model=scene.model.title,
                count=LARGEST,
            )
        )
    summed = weight.detach().float().cpu().sum(1)
    return first.name, [tuple(map(tuple, kernel)) for kernel in summed.tolist()]


def _start_of(scene: LessonScene, options: Options) -> Kernel:
    """Return the kernel that the part begins with.

    Raises:
        HookVizError: it is to be the network's own, which has none that could be shown.
    """
    if options["kernel"] != _OWN:
        return PRESETS[options["kernel"]]
    _, kernels = own_kernels(scene)
    return kernels[min(int(options["channel"]), len(kernels) - 1)]


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    grey = grey_of(scene, SIDE)
    kernel = _start_of(scene, options)
    stride, padding = int(options["stride"]), int(options["padding"])
    output = kernel_call(grey, kernel, stride, padding).output[0]
    rows, columns = grey.shape
    side = int(options.get(_SHOWN_SIDE, len(kernel)))
    facts: dict[str, Fact] = {
        "height": rows,
        "width": columns,
        "side": side,
        "weights": side * side,
        "stride": stride,
        "padding": padding,
        "rows": int(output.shape[0]),
        "columns": int(output.shape[1]),
        "lowest": float(output.min()),
        "highest": float(output.max()),
        "sum": float(sum(map(sum, kernel))),
    }
    for row, weights in enumerate(kernel, 1):
        facts |= {f"weight_{row}_{column}": weight for column, weight in enumerate(weights, 1)}
    for other in (1, 2):
        facts[f"rows_at_stride_{other}"] = output_length(rows, side, other, padding)
        facts[f"columns_at_stride_{other}"] = output_length(columns, side, other, padding)
    facts["rows_without_padding"] = output_length(rows, side, stride, 0)
    facts["columns_without_padding"] = output_length(columns, side, stride, 0)
    return facts


def offered(options: Options) -> tuple[str, ...]:
    """Return the names of the kernels to begin from, in the order of the lesson's file."""
    named = [name.strip() for name in options["offer"].split(",")]
    return tuple(named) if options["offer"] else (*PRESETS, _OWN)


def _check_offer(value: str) -> str:
    named = [name.strip() for name in value.split(",")] if value else []
    return next(filter(None, map(choice((*PRESETS, _OWN)), named)), "")


PART = Part(
    "kernel",
    mark(
        "A kernel on the image in grey: its numbers can be edited, with stride and padding; the "
        "map that it makes, and the products behind any cell of it."
    ),
    options=(
        Option(
            "kernel",
            "vertical",
            mark(
                "vertical, horizontal, diagonal, outline, blur, sharpen, copy, or layer for one "
                "of the network's own."
            ),
            choice((*PRESETS, _OWN)),
        ),
        Option(
            "channel", "0", mark("Which of the network's own kernels."), whole_number(0, 100_000)
        ),
        Option(
            "stride", "1", mark("Cells that it moves at each step, 1 to 4."), whole_number(1, 4)
        ),
        Option(
            "map",
            "whole",
            mark("Whether the map is there at first: whole, or empty, to be filled."),
            choice(("whole", _EMPTY)),
        ),
        Option(
            "offer",
            "",
            mark("Which kernels to begin from are offered, with commas; without, all."),
            _check_offer,
        ),
        Option(
            "edit",
            "yes",
            mark(
                "Whether numbers, stride and padding can be changed (yes), the numbers alone "
                "(numbers), stride and padding alone (moves), or kernels only chosen (no)."
            ),
            choice(tuple(_EDITS)),
        ),
        Option("padding", "0", mark("Cells of zero around the image, 0 to 3."), whole_number(0, 3)),
    ),
    facts=_facts,
    link=lambda scene, _options: {"layer": scene.trace.convs[0].name} if scene.trace.convs else {},
)


_SECONDS = 10  # in which a map is filled


def _walk(
    call: LayerCall,
    channel: int,
    input_channel: int,
    cell: tuple[int, int],
    colormap: str,
    *,
    key: str = "walk",
    grey: tuple[str, str, str] | None = None,
    empty: bool = False,
    blank: bool = False,
    above: int | None = None,
    on_reach: Callable[[tuple[int, int]], None] = lambda _cell: None,
) -> None:
    """Show how `channel` comes from the layer's input channel number `input_channel`.

    It starts at `cell`, (row, column) of the output; `colormap` is a diverging one. An input that
    is a grey picture, 0 black to 1 white, is drawn as one where `grey` says what it is, what a map
    with values below zero is, and what one without: that is drawn in grey, too, since a copy of a
    picture is to look like one. The map is filled in `_SECONDS`, slowly at first.

    Args:
        call: what is walked over.
        channel: of the output.
        input_channel: of the input.
        cell: where the walk stands at first.
        colormap: a diverging one.
        key: of the component.
        grey: what is said of a grey picture, see above.
        empty: whether no cell is made yet.
        blank: whether cells that are still to come are not seen.
        above: pixels that something else takes above the maps, which are the larger then; None for
            a whole editor, above which they are small.
        on_reach: gets the cell to which a person has gone.
    """
    rows, columns = call.output.shape[1:]

    def reached(sent: object) -> None:
        match sent:
            case [int(row), int(column)] if 0 <= row < rows and 0 <= column < columns:
                on_reach((row, column))

    data = kernel_walk(call, channel, input_channel, cell)
    if grey is not None:
        given, signed, unsigned = grey
        is_picture = bool((call.output[channel] >= 0).all())
        says = (given, unsigned if is_picture else signed)
        data = {
            **data,
            "grey": True,
            "greyMap": is_picture,
            "says": says,
            "seconds": _SECONDS,
            "empty": empty,
            "blank": blank,
            "above": above,
        }
    mount("walk", key, {**data, "colours": colormap}, reached=reached)


_LARGEST = 1e6
"""What a weight is at most: what is larger is refused in words."""
_LARGEST_SIDE = 11
_LEFT_OPEN = {name: f"{{{name}}}" for name in ("text", "weight")}
"""Facts that the browser fills in."""
_MOST_STRIDE, _MOST_PADDING = 4, 3


@dataclass(frozen=True, slots=True)
class EditedKernel:
    """A kernel and how it moves; `preset` is the one that it is, ``""`` for one of nobody's."""

    kernel: Kernel
    stride: int
    padding: int
    preset: str


def edit_kernel(
    edited: EditedKernel,
    presets: Mapping[str, str],
    size: str,
    effect: str,
    on_change: Callable[[EditedKernel], None],
    *,
    key: str,
    edits: Collection[str] = ("numbers", "moves"),
) -> None:
    """Show the editor of a kernel, its stride and its padding.

    Args:
        edited: what is shown.
        presets: titles of the kernels to begin from, by name.
        size: what is said beside it of the map.
        effect: what the last change has done to the map, in words.
        on_change: gets what was changed; of a preset its name alone counts, and not the kernel.
        key: of the widget.
        edits: what can be changed beside the kernels to begin from: the kernel's ``"numbers"``,
            its ``"moves"``, which are stride and padding.
    """

    def changed(sent: object) -> None:
        change = _read(sent, len(edited.kernel), presets)
        if change is not None:
            on_change(change)

    data = {
        "kernel": edited.kernel,
        "stride": edited.stride,
        "padding": edited.padding,
        "preset": edited.preset,
        "presets": [{"name": name, "title": title} for name, title in presets.items()],
        "size": size,
        "effect": effect,
        "numbers": "numbers" in edits,
        "moves": "moves" in edits,
        "largest": _LARGEST,
        "words": {
            "label": say("The kernel"),
            "presets": say("Kernels to begin from"),
            "numbers": say("The kernel's numbers"),
            "number": say("Row {row}, column {column}", row="{row}", column="{column}"),
            "stride": say("Stride"),
            "padding": say("Padding"),
            "more": say("More: row {row}, column {column}", row="{row}", column="{column}"),
            "less": say("Less: row {row}, column {column}", row="{row}", column="{column}"),
            "turned": say("Turn all signs"),
            "noNumber": say("{text} is no number. The weight stays {weight}.", **_LEFT_OPEN),
            "tooLarge": say(
                "{text} is too large: a weight goes from −{most:,} to {most:,}. It stays {weight}.",
                most=int(_LARGEST),
                **_LEFT_OPEN,
            ),
        },
    }
    mount("kernel_editor", key, data, changed=changed)


def written_kernel(edited: EditedKernel) -> str:
    """Return the kernel as text, short enough for a link; see `read_kernel`."""
    rows = [[float(f"{value:.7g}") for value in row] for row in edited.kernel]
    parts = [[] if edited.preset else rows, edited.stride, edited.padding, edited.preset]
    return json.dumps(parts, separators=(",", ":"))


def read_kernel(text: str, presets: Mapping[str, Kernel]) -> EditedKernel | None:
    """Return the kernel of `written_kernel`, of a preset as it is now; None where it is none."""
    try:
        rows, stride, padding, preset = shallow_json.parse(text)
        kernel = [*map(list, presets[preset])] if preset else rows
        sent = {"kernel": kernel, "stride": stride, "padding": padding, "preset": preset}
        return _read(sent, min(len(kernel), _LARGEST_SIDE), presets)
    except (ValueError, TypeError, KeyError):
        return None


def _read(sent: Any, side: int, presets: Collection[str]) -> EditedKernel | None:
    """Return what the browser sent; None where it is out of bounds or nothing of this component."""
    match sent:
        case {
            "kernel": [*rows],
            "stride": int(stride),
            "padding": int(padding),
            "preset": str(preset),
        } if (
            1 <= stride <= _MOST_STRIDE
            and 0 <= padding <= _MOST_PADDING
            and (preset in presets or not preset)
            and len(rows) == side
            and all(_is_row(row, side) for row in rows)
        ):
            kernel = tuple(tuple(float(value) for value in row) for row in rows)
            return EditedKernel(kernel, stride, padding, preset)
    return None


def _is_row(row: object, side: int) -> bool:
    return (
        isinstance(row, list)
        and len(row) == side
        and all(
            isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _LARGEST
            for value in row
        )
    )


_ABOVE = {"no": 0, "moves": 100, "numbers": 125}
"""Pixels that an editor which is not whole takes above the maps, beside the kernels' names."""


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the kernel and its walk; the link keeps what was edited."""
    layer, own = _own(scene)
    name, channel = options["kernel"], int(options["channel"])
    channel = max(0, min(picked(key, "channel", channel), len(own) - 1))
    kernels = {**PRESETS, _OWN: own[channel]} if own else PRESETS  # of whatever model is chosen now
    stride, padding = int(options["stride"]), int(options["padding"])
    first = kernels.get(name) or _start_of(scene, options)
    at_first = EditedKernel(first, stride, padding, name if name in kernels else "")

    def edited_now() -> EditedKernel:
        return read_kernel(picked(key, "kernel", ""), kernels) or at_first

    edited = edited_now()

    def take(new: EditedKernel) -> None:
        changed = None if new.preset else changed_weight(edited_now().kernel, new.kernel)
        pick(key, "kernel", written_kernel(new))
        pick(key, "was", "" if changed is None else _written(changed))

    def reach(cell: Cell) -> None:
        pick(key, "cell", cell)

    start = _start_of(scene, options)
    remember_shown(key, {_SHOWN_SIDE: str(len(edited.kernel))}, {_SHOWN_SIDE: str(len(start))})
    edits = _EDITS[options["edit"]]
    grey = grey_of(scene, SIDE)
    call = kernel_call(grey, edited.kernel, edited.stride, edited.padding)
    rows, columns = (int(length) for length in call.output.shape[1:])
    nowhere = (rows, columns)  # which no cell is in
    reached = picked(key, "cell", nowhere)
    cell = (rows // 2, columns // 2) if reached == nowhere else reached
    titles = {**TITLES, **({_OWN: mark("The network's own")} if own else {})}
    presets = {each: say(titles[each]) for each in offered(options) if each in titles}
    size = _size(grey, rows, columns)
    edit_kernel(
        edited, presets, size, _effect(grey, edited, key), take, key=f"kernel-{key}", edits=edits
    )
    if edited.preset == _OWN and len(own) > 1:
        label = say("Channel of {layer}", layer=layer)
        slide(label, 0, len(own) - 1, key, "channel", first=channel)
    _walk(
        call,
        0,
        0,
        (min(cell[0], rows - 1), min(cell[1], columns - 1)),
        diverging(),
        key=f"walk-{key}",
        empty=options["map"] == _EMPTY and reached == nowhere,
        blank=options["map"] == _EMPTY,
        above=_ABOVE.get(options["edit"]),
        on_reach=reach,
        grey=(
            say("the image in grey"),
            say("the map: {below} below zero, {above} above", **sign_words()),
            say("the map: nowhere below zero; black is zero"),
        ),
    )


def _size(grey: NDArray[np.float32], rows: int, columns: int) -> str:
    return say(
        "{height} × {width} pixels make a map of {rows} × {columns} cells.",
        height=grey.shape[0],
        width=grey.shape[1],
        rows=rows,
        columns=columns,
    )


def _effect(grey: NDArray[np.float32], edited: EditedKernel, key: str) -> str:
    """Say what the weight that was changed last has done to the map."""
    kernel, changed = edited.kernel, _read_changed(picked(key, "was", ""), edited.kernel)
    before = kernel
    if changed is not None:
        lines = [list(row) for row in kernel]
        lines[changed.row][changed.column] = changed.before
        before = tuple(map(tuple, lines))
    maps = (
        kernel_call(grey, each, edited.stride, edited.padding).output[0].numpy()
        for each in (before, kernel)
    )
    return effect_words(kernel, changed, *maps)


def _written(changed: ChangedWeight) -> str:
    return f"{changed.row} {changed.column} {changed.before:.7g}"


def _read_changed(text: str, kernel: Kernel) -> ChangedWeight | None:
    """Return the weight of `_written`; None where a link has anything else."""
    found = re.fullmatch(r"(\d) (\d) (-?\d{1,7}(?:\.\d{1,20})?(?:e[-+]\d\d)?)", text)
    if found is None:
        return None
    row, column, before = int(found[1]), int(found[2]), float(found[3])
    inside = row < len(kernel) and column < len(kernel)
    return ChangedWeight(row, column, before) if inside and kernel[row][column] != before else None


def _own(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the network's own kernels; none where it has none that could be shown."""
    try:
        return own_kernels(scene)
    except HookVizError:
        return "", []

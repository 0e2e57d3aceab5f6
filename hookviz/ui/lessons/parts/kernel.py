"""Slide a kernel over the image in grey, with its numbers, stride and padding to edit."""

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
from hookviz.ui.lessons.picks import pick, picked, remember_options, slide, within
from hookviz.ui.state import Cell
from hookviz.ui.theme import diverging, sign_words

SIDE = 96
"""Cells on a side of the grey picture, at most, so that each is visible."""
_OWN = "layer"
"""Word of a lesson's file for a kernel of the network."""
_SIDE_NOW = "side"
"""Option that the page adds: numbers on a side of the present kernel."""
_EMPTY = "empty"
"""Word of a lesson's file for a map that is filled by playing."""
LARGEST = 7
"""Numbers on a side that can be edited, at most."""
_EDITS = {
    "yes": ("numbers", "moves"),
    "numbers": ("numbers",),
    "moves": ("moves",),
    "no": (),
}
"""What each value of `edit` lets change: a kernel's numbers, and its stride and padding."""


def own_kernels(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the first conv layer's name, and each of its kernels for a grey picture.

    A grey pixel has the same number in all colours, so that a kernel's slices act as their sum.

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
    """Return the part's first kernel.

    Raises:
        HookVizError: it is the network's own, which has no such kernels.
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
    side = int(options.get(_SIDE_NOW, len(kernel)))
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
    """Return the names of the kernels to start from, in the order of the lesson's file."""
    return _names(options["offer"]) or (*PRESETS, _OWN)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text else ()


def _check_offer(value: str) -> str:
    return next(filter(None, map(choice((*PRESETS, _OWN)), _names(value))), "")


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


_FILL_S = 10  # in which a map is filled, slowly at first
_LARGEST = 1e6
"""Largest magnitude of a weight."""
_LARGEST_SIDE = 11
_BROWSER_FACTS = {name: f"{{{name}}}" for name in ("text", "weight")}
"""Facts that the browser fills in."""
_MOST_STRIDE, _MOST_PADDING = 4, 3
_ABOVE_PX = {"no": 0, "moves": 100, "numbers": 125}
"""Height of an editor with fewer controls above the maps, which are larger then."""


def _walk(call: LayerCall, reached: Cell | None, options: Options, key: str) -> None:
    """Show the kernel's walk over the grey image, and the map that it makes.

    A map without values below zero is drawn in grey too, since a copy must look like the picture.

    Args:
        call: the convolution.
        reached: the cell that the learner has reached; None for the middle one.
        options: of the part.
        key: of the part.
    """
    rows, columns = call.output.shape[1:]

    def reach(sent: object) -> None:
        match sent:
            case [int(row), int(column)] if 0 <= row < rows and 0 <= column < columns:
                pick(key, "cell", (row, column))

    is_picture = bool((call.output[0] >= 0).all())
    map_words = (
        say("the map: nowhere below zero; black is zero")
        if is_picture
        else say("the map: {below} below zero, {above} above", **sign_words())
    )
    cell = within(reached or (rows // 2, columns // 2), (rows, columns))
    data = {
        **kernel_walk(call, 0, 0, cell),
        "grey": True,
        "greyMap": is_picture,
        "says": (say("the image in grey"), map_words),
        "seconds": _FILL_S,
        "empty": options["map"] == _EMPTY and reached is None,
        "blank": options["map"] == _EMPTY,
        "above": _ABOVE_PX.get(options["edit"]),
        "colours": diverging(),
    }
    mount("walk", f"walk-{key}", data, reached=reach)


@dataclass(frozen=True, slots=True)
class EditedKernel:
    """A kernel with its stride and padding; `preset` is its name, empty for an edited one."""

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
        edited: the present kernel.
        presets: titles of the kernels to start from, by name.
        size: of the map, in words.
        effect: of the last change on the map, in words.
        on_change: gets the changed kernel; of a preset its name counts alone.
        key: of the widget.
        edits: what can be changed beside the preset: the kernel's ``"numbers"``, and its
            ``"moves"``, which are stride and padding.
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
            "noNumber": say("{text} is no number. The weight stays {weight}.", **_BROWSER_FACTS),
            "tooLarge": say(
                "{text} is too large: a weight goes from −{most:,} to {most:,}. It stays {weight}.",
                most=int(_LARGEST),
                **_BROWSER_FACTS,
            ),
        },
    }
    mount("kernel_editor", key, data, changed=changed)


def written_kernel(edited: EditedKernel) -> str:
    """Write a kernel as text for a link; see `read_kernel`."""
    rows = [[float(f"{value:.7g}") for value in row] for row in edited.kernel]
    parts = [[] if edited.preset else rows, edited.stride, edited.padding, edited.preset]
    return json.dumps(parts, separators=(",", ":"))


def read_kernel(text: str, presets: Mapping[str, Kernel]) -> EditedKernel | None:
    """Read the text of `written_kernel`; None for another text."""
    try:
        rows, stride, padding, preset = shallow_json.parse(text)
        kernel = [*map(list, presets[preset])] if preset else rows
        sent = {"kernel": kernel, "stride": stride, "padding": padding, "preset": preset}
        return _read(sent, min(len(kernel), _LARGEST_SIDE), presets)
    except (ValueError, TypeError, KeyError):
        return None


def _read(sent: Any, side: int, presets: Collection[str]) -> EditedKernel | None:
    """Read a kernel from a browser's message; None if it is malformed or out of bounds."""
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


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the kernel and its walk; the link has the edited kernel."""
    layer, own = _own(scene)
    name, channel = options["kernel"], int(options["channel"])
    channel = max(0, min(picked(key, "channel", channel), len(own) - 1))
    kernels = {**PRESETS, _OWN: own[channel]} if own else PRESETS
    stride, padding = int(options["stride"]), int(options["padding"])
    first = kernels.get(name) or _start_of(scene, options)
    at_first = EditedKernel(first, stride, padding, name if name in kernels else "")

    def edited_now() -> EditedKernel:
        return read_kernel(picked(key, "kernel", ""), kernels) or at_first

    edited = edited_now()

    def take(new: EditedKernel) -> None:
        changed = None if new.preset else changed_weight(edited_now().kernel, new.kernel)
        pick(key, "kernel", written_kernel(new))
        pick(key, "was", "" if changed is None else _changed_text(changed))

    start = _start_of(scene, options)
    remember_options(key, {_SIDE_NOW: str(len(edited.kernel))}, {_SIDE_NOW: str(len(start))})
    edits = _EDITS[options["edit"]]
    grey = grey_of(scene, SIDE)
    call = kernel_call(grey, edited.kernel, edited.stride, edited.padding)
    rows, columns = (int(length) for length in call.output.shape[1:])
    no_cell = (rows, columns)
    reached = picked(key, "cell", no_cell)
    titles = {**TITLES, **({_OWN: mark("The network's own")} if own else {})}
    presets = {each: say(titles[each]) for each in offered(options) if each in titles}
    size = say(
        "{height} × {width} pixels make a map of {rows} × {columns} cells.",
        height=grey.shape[0],
        width=grey.shape[1],
        rows=rows,
        columns=columns,
    )
    edit_kernel(
        edited, presets, size, _effect(grey, edited, key), take, key=f"kernel-{key}", edits=edits
    )
    if edited.preset == _OWN and len(own) > 1:
        label = say("Channel of {layer}", layer=layer)
        slide(label, range(len(own)), key, "channel", first=channel)
    _walk(call, None if reached == no_cell else reached, options, key)


def _effect(grey: NDArray[np.float32], edited: EditedKernel, key: str) -> str:
    """Describe the effect of the last changed weight on the map."""
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


def _changed_text(changed: ChangedWeight) -> str:
    return f"{changed.row} {changed.column} {changed.before:.7g}"


def _read_changed(text: str, kernel: Kernel) -> ChangedWeight | None:
    """Read the text of `_changed_text`; None for another text."""
    match = re.fullmatch(r"(\d) (\d) (-?\d{1,7}(?:\.\d{1,20})?(?:e[-+]\d\d)?)", text)
    if match is None:
        return None
    row, column, before = int(match[1]), int(match[2]), float(match[3])
    inside = row < len(kernel) and column < len(kernel)
    return ChangedWeight(row, column, before) if inside and kernel[row][column] != before else None


def _own(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the first layer's name and kernels; an empty name and list without any."""
    try:
        return own_kernels(scene)
    except HookVizError:
        return "", []

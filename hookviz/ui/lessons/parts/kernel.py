"""Draw a kernel to edit, its walk over the image in grey, and the map that it makes."""

import re

import numpy as np
from numpy.typing import NDArray

from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lessons.kernel_effect import ChangedWeight, changed_weight, effect_words
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, kernel_call
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.kernel import (
    EDITS,
    EMPTY,
    OWN,
    SHOWN_SIDE,
    SIDE,
    offered,
    own_kernels,
    start_of,
)
from hookviz.lessons.pictures import grey_of
from hookviz.ui.components.kernel_editor import (
    EditedKernel,
    edit_kernel,
    read_kernel,
    written_kernel,
)
from hookviz.ui.components.walk import walk
from hookviz.ui.lessons.picks import pick, picked, remember_shown, slide
from hookviz.ui.state import Cell
from hookviz.ui.theme import diverging, sign_words

_ABOVE = {"no": 0, "moves": 100, "numbers": 125}
"""Pixels that an editor which is not whole takes above the maps, beside the kernels' names."""


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the kernel and its walk; the link keeps what was edited."""
    layer, own = _own(scene)
    name, channel = options["kernel"], int(options["channel"])
    channel = max(0, min(picked(key, "channel", channel), len(own) - 1))
    kernels = {**PRESETS, OWN: own[channel]} if own else PRESETS  # of whatever model is chosen now
    stride, padding = int(options["stride"]), int(options["padding"])
    first = kernels.get(name) or start_of(scene, options)
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

    start = start_of(scene, options)
    remember_shown(key, {SHOWN_SIDE: str(len(edited.kernel))}, {SHOWN_SIDE: str(len(start))})
    edits = EDITS[options["edit"]]
    grey = grey_of(scene, SIDE)
    call = kernel_call(grey, edited.kernel, edited.stride, edited.padding)
    rows, columns = (int(length) for length in call.output.shape[1:])
    nowhere = (rows, columns)  # which no cell is in
    reached = picked(key, "cell", nowhere)
    cell = (rows // 2, columns // 2) if reached == nowhere else reached
    titles = {**TITLES, **({OWN: mark("The network's own")} if own else {})}
    presets = {each: say(titles[each]) for each in offered(options) if each in titles}
    size = _size(grey, rows, columns)
    edit_kernel(
        edited, presets, size, _effect(grey, edited, key), take, key=f"kernel-{key}", edits=edits
    )
    if edited.preset == OWN and len(own) > 1:
        label = say("Channel of {layer}", layer=layer)
        slide(label, 0, len(own) - 1, key, "channel", first=channel)
    walk(
        call,
        0,
        0,
        (min(cell[0], rows - 1), min(cell[1], columns - 1)),
        diverging(),
        key=f"walk-{key}",
        empty=options["map"] == EMPTY and reached == nowhere,
        blank=options["map"] == EMPTY,
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

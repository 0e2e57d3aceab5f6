"""Draw a kernel to edit, its walk over the image in grey, and the map that it makes."""

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, kernel_call
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.kernel import OWN, SHOWN_SIDE, SIDE, own_kernels, start_of
from hookviz.lessons.pictures import grey_of
from hookviz.ui.components.kernel_editor import (
    EditedKernel,
    edit_kernel,
    read_kernel,
    written_kernel,
)
from hookviz.ui.components.walk import walk
from hookviz.ui.lessons.picks import pick, picked, remember_shown, slide
from hookviz.ui.theme import diverging, sign_words


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the kernel and its walk; the link keeps what was edited."""
    layer, own = _own(scene)
    name, channel = options["kernel"], int(options["channel"])
    channel = max(0, min(picked(key, "channel", channel), len(own) - 1))
    kernels = {**PRESETS, OWN: own[channel]} if own else PRESETS  # of whatever model is chosen now
    stride, padding = int(options["stride"]), int(options["padding"])
    edited = read_kernel(picked(key, "kernel", ""), kernels)
    if edited is None:
        first = kernels.get(name) or start_of(scene, options)
        edited = EditedKernel(first, stride, padding, name if name in kernels else "")

    def take(new: EditedKernel) -> None:
        pick(key, "kernel", written_kernel(new))

    start = start_of(scene, options)
    remember_shown(key, {SHOWN_SIDE: str(len(edited.kernel))}, {SHOWN_SIDE: str(len(start))})
    grey = grey_of(scene, SIDE)
    call = kernel_call(grey, edited.kernel, edited.stride, edited.padding)
    rows, columns = (int(length) for length in call.output.shape[1:])
    presets = {each: say(TITLES[each]) for each in PRESETS}
    if own:
        presets[OWN] = say("The network's own")
    size = say(
        "{height} × {width} pixels make a map of {rows} × {columns} cells.",
        height=grey.shape[0],
        width=grey.shape[1],
        rows=rows,
        columns=columns,
    )
    edit_kernel(edited, presets, size, take, key=f"kernel-{key}")
    if edited.preset == OWN and len(own) > 1:
        label = say("Channel of {layer}", layer=layer)
        slide(label, 0, len(own) - 1, key, "channel", first=channel)
    walk(
        call,
        0,
        0,
        (rows // 2, columns // 2),
        diverging(),
        key=f"walk-{key}",
        grey=(
            say("the image in grey"),
            say("the map: {below} below zero, {above} above", **sign_words()),
            say("the map: nowhere below zero; black is zero"),
        ),
    )


def _own(scene: LessonScene) -> tuple[str, list[Kernel]]:
    """Return the network's own kernels; none where it has none that could be shown."""
    try:
        return own_kernels(scene)
    except HookVizError:
        return "", []

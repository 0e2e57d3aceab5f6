"""Draw a kernel to edit, its walk over the image in grey, and the map that it makes."""

from dataclasses import replace

import streamlit as st

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, kernel_call
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.kernel import OWN, SHOWN_SIDE, SIDE, own_kernels, start_of
from hookviz.lessons.pictures import grey_of
from hookviz.ui.components.kernel_editor import EditedKernel, edit_kernel
from hookviz.ui.components.walk import walk
from hookviz.ui.lessons.picks import remember_shown
from hookviz.ui.theme import diverging, sign_words


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the kernel and its walk; what was edited is kept for as long as the session."""
    edited_key = f"_kernel {key}"
    channel_key = f"_kernel-channel {key}"
    layer, own = _own(scene)
    name, channel = options["kernel"], int(options["channel"])
    edited: EditedKernel = st.session_state.setdefault(
        edited_key,
        EditedKernel(
            start_of(scene, options), int(options["stride"]), int(options["padding"]), name
        ),
    )
    channel = min(st.session_state.get(channel_key, channel), max(0, len(own) - 1))
    if edited.preset == OWN:  # of whatever model is chosen by now
        edited = replace(edited, kernel=own[channel]) if own else replace(edited, preset="")

    def take(new: EditedKernel) -> None:
        if new.preset == OWN and own:
            new = replace(new, kernel=own[channel])
        elif new.preset:
            new = replace(new, kernel=PRESETS[new.preset])
        st.session_state[edited_key] = new

    start = start_of(scene, options)
    remember_shown(key, {SHOWN_SIDE: str(len(edited.kernel))}, {SHOWN_SIDE: str(len(start))})
    grey = grey_of(scene, SIDE)
    call = kernel_call(grey, edited.kernel, edited.stride, edited.padding)
    rows, columns = (int(length) for length in call.output.shape[1:])
    presets = {each: say(title) for each, title in TITLES.items()}
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
        picked = st.slider(
            say("Channel of {layer}", layer=layer), 0, len(own) - 1, channel, key=f"channel {key}"
        )
        if picked != channel:
            st.session_state[channel_key] = picked
            st.rerun(scope="fragment")
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

"""Show the live stream, and freeze one of its frames for the explorer.

`hookviz.live` draws frames, and `hookviz.ui.serving` carries them.
"""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from hookviz.classroom.link_parameters import LIVE
from hookviz.errors import HookVizError
from hookviz.explorer.layers import ResolvedView
from hookviz.explorer.rendering import Look, scale_in_view
from hookviz.explorer.view import Cell, View
from hookviz.hooking.channels_last import is_convolutional
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.live.frames import CAMERA_WIDTH, MOST_BYTES, Subject
from hookviz.live.streams import streams
from hookviz.types import Model, Preprocess
from hookviz.ui.components.files import mount
from hookviz.ui.link import update_link, word
from hookviz.ui.recent_images import keep_and_select, new_name
from hookviz.ui.serving import live_route, resources
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import (
    ModelChoice,
    choose,
    choose_upload,
    chosen_upload,
    open_upload,
    plain,
)
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME

_FRAME_PX = 256  # for a network that prepares its images by a function of its own
_LARGEST = 1 << 16  # rows or columns of a map, and channels of a layer
_TIME = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
# No widget has these keys, so no link can set them.
_OFFERED, _ARRIVED, _FROZEN = "_live", "_frame", "_frozen"


def is_live() -> bool:
    """Return whether the live stream is chosen."""
    return bool(st.session_state.get("image") == LIVE)


def explain_no_lens() -> None:
    """Tell the person why a stream has no lenses, in place of their buttons."""
    st.caption(
        say(
            "**View:** all channels, live. The lenses take one image: "
            "freeze a frame, and they are here."
        )
    )


def show_rounding(model: Model) -> None:
    """Show in the sidebar how a stream's numbers are rounded, if they are."""
    element = st.sidebar.empty()  # for any network: the elements below stay in position
    if is_convolutional(model.network):
        element.caption(
            say(
                "Live numbers are those of a plain pass to 2 in 100,000 of a layer's largest: "
                "channels last in memory are faster. A frozen frame is computed exactly."
            )
        )


def show_stream(
    model: Model,
    choice: ModelChoice,
    resolved: ResolvedView,
    look: Look,
    *,
    size: int | None,
    whole: bool,
    teaches: bool,
) -> None:
    """Show the stream: its frames, their classes and the channels of a layer.

    Args:
        model: the network, loaded.
        choice: the same, for the threads that answer.
        resolved: the layer and the step whose output is drawn.
        look: scale, colours and order of the channels.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole frame.
        teaches: whether the page teaches a class, to which the camera may be shown.
    """
    step, layers = resolved.step, [layer.name for layer in resolved.layers]
    subject = Subject(
        use_model=partial(resources.use_model, choice),
        size=size,
        whole=whole,
        step=str(step),
        look=look,
        language=current(),
    )
    cookie = st.context.cookies.get(XSRF_COOKIE_NAME, "")  # the stream's socket has it too
    token = streams().offer(session(), cookie, subject)
    st.session_state[_OFFERED] = True
    values_key = (model.name, model.digest, size, whole, step)
    side, seen = frame_geometry(model, size=size, whole=whole)
    facts = {
        "path": live_route.PATH,
        "token": token,
        "side": side,
        "cameraWidth": CAMERA_WIDTH,
        "mostBytes": MOST_BYTES,
        "seen": seen,
        "subject": _digest(*values_key, look, current()),  # changes with the pictures
        "levels": _digest(*values_key),  # changes with the channels' values alone
        "layer": str(step),
        "layers": layers,
        "at": resolved.layer.name,
        "teaches": teaches,
        "random": model.weights.partition(",")[0] == "random",
    }
    # after *again* the page runs, and offers the stream again
    mount("live", "live", facts, frozen=freeze, again=lambda _: None)


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def leave() -> None:
    """End the session's stream."""
    if st.session_state.pop(_OFFERED, False):
        streams().withdraw(session())


def frame_geometry(model: Model, *, size: int | None, whole: bool) -> tuple[int, float | None]:
    """Return the size of a frame, and the part of it that the network gets.

    Returns:
        Pixels of the shorter side after the network's own resizing; and the side of the central
        crop as a share of that side: 0.0 for the whole frame, None for an unknown part.
    """
    steps = model.preprocess
    if not isinstance(steps, Preprocess):
        return _FRAME_PX, None
    crop = size or steps.crop
    if whole:
        return crop, 0.0
    return max(1, round(steps.resize * crop / steps.crop)), steps.crop / steps.resize


@dataclass(frozen=True, slots=True)
class FrozenFrame:
    """Frame from the browser.

    Attributes:
        name: for the row of recent images, with the visitor's time of day.
        data: the file that the stream drew.
        channel: the picked channel, if any.
        cell: row, column, rows and columns of that channel's strongest cell, if any.
    """

    name: str
    data: bytes
    channel: int | None
    cell: tuple[int, int, int, int] | None


def read_frame(message: Any) -> FrozenFrame | None:
    """Read a frame from a browser's message of any form; None if it is no frame."""
    if not isinstance(message, dict) or not isinstance(message.get("file"), str):
        return None
    if len(message["file"]) > MOST_BYTES * 4 // 3 + 4:
        return None
    try:
        data = base64.b64decode(message["file"], validate=True)
    except (binascii.Error, ValueError):
        return None
    time = message.get("at")
    is_time = isinstance(time, str) and _TIME.fullmatch(time)
    channel, cell = message.get("channel"), message.get("cell")
    return FrozenFrame(
        name=say("Frame {time}", time=time) if is_time else say("Frame"),
        data=data,
        channel=channel if _is_index(channel) else None,
        cell=tuple(cell)
        if isinstance(cell, list) and len(cell) == 4 and all(map(_is_index, cell))
        else None,
    )


def freeze(message: Any) -> None:
    """Open a frame in the explorer with its channel and cell, as one step for Back.

    For a callback before the page runs, in which `open_frozen_frame` decodes the frame.
    """
    frame = read_frame(message)
    if frame is None:
        return
    upload = new_name()
    st.session_state[_ARRIVED] = frame, upload
    scale_lock = scale_in_view(streams().held(session()))
    cell = frame.cell and Cell(*frame.cell)
    link = View(held=scale_lock, channel=frame.channel, cell=cell).link()
    open_upload(upload)
    update_link(**{name: link.get(name) for name in ("held", "channel")})
    if "cell" in link:
        update_link(cell=link["cell"])


def open_frozen_frame() -> None:
    """Add the frame of the last `freeze` to the recent images, and choose it."""
    arrived: tuple[FrozenFrame, str] | None = st.session_state.pop(_ARRIVED, None)
    if arrived is None:
        return
    frame, upload = arrived
    try:
        st.session_state[_FROZEN] = keep_and_select(frame.name, frame.data, name=upload)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/broken_image:")


def _is_frozen_chosen() -> bool:
    """Return whether the chosen image is the last frozen frame."""
    frozen = st.session_state.get(_FROZEN)
    return bool(st.session_state.get("image") == "Upload" and frozen and frozen == chosen_upload())


def drop_scale_lock() -> None:
    """Remove a stream's locked scale from the link if another image is chosen."""
    if word("held") is not None and not _is_frozen_chosen():
        update_link(held=None)


def offer_live_button() -> None:
    """Show a button beside a frozen frame, back to the stream."""
    if _is_frozen_chosen():
        st.button(
            say("Back to live"),
            icon=":material/play_arrow:",
            on_click=go_on,
            help=say("Go on with the camera or the video; the space bar does so too"),
            key="hv-go-on",
        )


def go_on() -> None:
    """Go back to the stream."""
    choose_upload(None)
    choose(image=LIVE)


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST

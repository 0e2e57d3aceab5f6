"""Take one frame out of the stream for the explorer, as any image, and lead back."""

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Any

import streamlit as st

from hookviz.classroom.link_parameters import LIVE
from hookviz.errors import HookVizError
from hookviz.explorer.rendering import scale_in_view
from hookviz.explorer.view import Cell, View
from hookviz.language.saying import say
from hookviz.live.frames import MOST_BYTES
from hookviz.live.streams import streams
from hookviz.ui.link import update_link, word
from hookviz.ui.recent_images import keep_and_select, new_name
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import (
    choose,
    choose_upload,
    chosen_upload,
    plain,
)

# Keys of session_state that no widget has can't be set from outside.
_ARRIVED, _FROZEN = "_frame", "_frozen"
_TIME = re.compile(r"\d\d:\d\d:\d\d", re.ASCII)
_LARGEST = 1 << 16  # rows or columns of a map, and channels of a layer


@dataclass(frozen=True, slots=True)
class FrozenFrame:
    """Frame as the browser handed it over.

    Attributes:
        name: for the row of recent images, with the time of day that the visitor's clock said.
        data: the very bytes of the file that the stream drew.
        channel: the one that was picked up, if any.
        cell: row, column, rows and columns of that channel's strongest cell, if any.
    """

    name: str
    data: bytes
    channel: int | None
    cell: tuple[int, int, int, int] | None


def read_frame(message: Any) -> FrozenFrame | None:
    """Read a frame from what a browser sent, which may be anything; None where it is no frame."""
    if not isinstance(message, dict) or not isinstance(message.get("file"), str):
        return None
    if len(message["file"]) > MOST_BYTES * 4 // 3 + 4:
        return None
    try:
        data = base64.b64decode(message["file"], validate=True)
    except (binascii.Error, ValueError):
        return None
    at = message.get("at")
    known = isinstance(at, str) and _TIME.fullmatch(at)
    channel, cell = message.get("channel"), message.get("cell")
    return FrozenFrame(
        name=say("Frame {time}", time=at) if known else say("Frame"),
        data=data,
        channel=channel if _is_index(channel) else None,
        cell=tuple(cell)
        if isinstance(cell, list) and len(cell) == 4 and all(map(_is_index, cell))
        else None,
    )


def freeze(message: Any) -> None:
    """Go to the explorer with a frame, its channel and its cell: one step for Back.

    To be called before the page runs; `take_frame` decodes it there, in a turn.
    """
    frame = read_frame(message)
    if frame is None:
        return
    upload = new_name()
    st.session_state[_ARRIVED] = frame, upload
    held = scale_in_view(streams().held(session()))
    shown = View(held=held, channel=frame.channel, cell=frame.cell and Cell(*frame.cell)).link()
    choose(image="Upload", upload=upload)
    update_link(**{name: shown.get(name) for name in ("held", "channel")})
    if "cell" in shown:
        update_link(cell=shown["cell"])


def take_frame() -> None:
    """Keep a frame that has just come among the recent images, and look at it."""
    arrived: tuple[FrozenFrame, str] | None = st.session_state.pop(_ARRIVED, None)
    if arrived is None:
        return
    frame, upload = arrived
    try:
        st.session_state[_FROZEN] = keep_and_select(frame.name, frame.data, name=upload)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/broken_image:")


def _is_shown() -> bool:
    """Return whether the frame that was frozen last is what is looked at."""
    frozen = st.session_state.get(_FROZEN)
    return bool(st.session_state.get("image") == "Upload" and frozen and frozen == chosen_upload())


def drop_held_scale() -> None:
    """Take the scale that a stream held out of the link, where another image is shown."""
    if word("held") is not None and not _is_shown():
        update_link(held=None)


def offer_way_back() -> None:
    """Show a button beside a frame that was frozen, which goes on with the stream."""
    if _is_shown():
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

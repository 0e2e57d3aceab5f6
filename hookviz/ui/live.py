"""Show the middle of the page while a stream runs: what the stream is of, and what plays it."""

import base64
import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import streamlit as st

from hookviz.classroom.link_parameters import LIVE
from hookviz.errors import HookVizError
from hookviz.explorer.drawn import held_in_view
from hookviz.explorer.layers import Looked
from hookviz.explorer.look import Look
from hookviz.explorer.view import Cell, View
from hookviz.hooking.channels_last import is_convolutional
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.live.frames import CAMERA_WIDTH, MOST_BYTES
from hookviz.live.stream_options import Subject
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
    plain,
)
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME

_SIDE = 256  # pixels of a frame for a network that prepares its images by a function of its own
_OFFERED = "_live"  # a key of session_state that no widget has can't be set from outside


def _live(
    stream: Mapping[str, Any],
    on_freeze: Callable[[Any], None],
    *,
    key: str = "live",
) -> None:
    """Play the stream: the photograph, its classes, every channel, and the one picked up.

    Args:
        stream: where frames go (``path``, ``token``), the pixels of their shorter side (``side``),
            the pixels to ask a camera for (``cameraWidth``), the most bytes of a frame that is kept
            (``mostBytes``), the share of it that the network sees (``seen``), what is drawn of them
            in a word that changes with it (``subject``), and one that changes with the channels'
            values alone (``levels``), the step's name (``layer``), the layers that can be chosen
            (``layers``) and the one that is (``at``), whether the weights are random, and whether
            the page teaches a class (``teaches``).
        on_freeze: gets a frame as the browser hands it over, which is anything.
        key: of the component in Streamlit's state.
    """

    def run_again(_sent: object) -> None:
        """Do nothing more: the page runs, and offers the stream anew."""

    mount("live", key, stream, frozen=on_freeze, again=run_again)


def is_live() -> bool:
    """Return whether the stream is the image that was chosen."""
    return bool(st.session_state.get("image") == LIVE)


def say_no_lens() -> None:
    """Say why there are no lenses now, where they are chosen."""
    st.caption(
        say(
            "**View:** all channels, live. The lenses take one image: "
            "freeze a frame, and they are here."
        )
    )


def say_rounding(model: Model) -> None:
    """Say in the sidebar how a stream's numbers are rounded; below it lies what stays in place."""
    place = st.sidebar.empty()
    if is_convolutional(model.network):
        place.caption(
            say(
                "Live numbers are those of a plain pass to 2 in 100,000 of a layer's largest: "
                "channels last in memory are faster. A frozen frame is computed exactly."
            )
        )


def show_stream(
    model: Model,
    choice: ModelChoice,
    looked: Looked,
    look: Look,
    *,
    size: int | None,
    whole: bool,
    teaches: bool,
) -> None:
    """Show the stream, and what is looked at of the network as it sees the frames.

    Args:
        model: the network, loaded.
        choice: the same, as it was chosen.
        looked: the step whose output is drawn, and the layers beside its own.
        look: how it is drawn.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole frame.
        teaches: whether the page teaches a class, to which the camera may be shown.
    """
    step, layers = looked.step, [layer.name for layer in looked.layers]
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
    seen_by = (model.name, model.digest, size, whole, step)
    side, seen = frame_geometry(model, size=size, whole=whole)
    _live(
        {
            "path": live_route.PATH,
            "token": token,
            "side": side,
            "cameraWidth": CAMERA_WIDTH,
            "mostBytes": MOST_BYTES,
            "seen": seen,
            "subject": _digest(*seen_by, look, current()),
            "levels": _digest(*seen_by),
            "layer": str(step),
            "layers": layers,
            "at": looked.layer.name,
            "teaches": teaches,
            "random": model.weights.partition(",")[0] == "random",
        },
        on_freeze=freeze,
    )


def _digest(*parts: object) -> str:
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def leave() -> None:
    """End the stream of a session that looks at something else."""
    if st.session_state.pop(_OFFERED, False):
        streams().withdraw(session())


def frame_geometry(model: Model, *, size: int | None, whole: bool) -> tuple[int, float | None]:
    """Return how large a frame should be, and how much of it the network sees.

    Returns:
        Pixels of its shorter side, as the network's own steps would shrink it to; and the side of
        the middle square that is seen, as a share of that side: 0.0 for the whole frame, None where
        it is not known.
    """
    steps = model.preprocess
    if not isinstance(steps, Preprocess):
        return _SIDE, None
    crop = size or steps.crop
    if whole:
        return crop, 0.0
    return max(1, round(steps.resize * crop / steps.crop)), steps.crop / steps.resize


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
    held = held_in_view(streams().held(session()))
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

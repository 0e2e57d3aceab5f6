"""The middle of the page while a stream runs: its view, and the component that plays it."""

import hashlib

import streamlit as st

from hookviz.live.streams import streams
from hookviz.live.subject import Subject
from hookviz.types import Address, LayerInfo, Model, Preprocess
from hookviz.ui.components.live import live
from hookviz.ui.explorer.view_choice import pick_view, settle
from hookviz.ui.live.frozen_frame import LIVE, freeze
from hookviz.ui.serving import resources
from hookviz.ui.serving.turns import session
from hookviz.ui.state import ModelChoice, choose_channel

_COOKIE = "_streamlit_xsrf"  # the stream's socket comes with it too
_SIDE = 256  # pixels of a frame for a network that prepares its images by a function of its own
_OFFERED = "_live"  # a key of session_state that no widget has can't be set from outside


def is_live() -> bool:
    """Whether the stream is the image that was chosen."""
    return bool(st.session_state.get("image") == LIVE)


def say_no_lens() -> None:
    """Where the lenses are chosen, why there are none now."""
    st.caption(
        "**Look at:** the channels, live. The other ways to look take one image: freeze a frame, "
        "and they are here."
    )


def show_stream(
    model: Model,
    choice: ModelChoice,
    layer: LayerInfo,
    step: Address,
    *,
    size: int | None,
    whole: bool,
) -> None:
    """How the channels are drawn, and the stream, of which `step` of the network is shown."""
    view = pick_view(layer.output_shape[0])
    scale, colormap, signed_colormap = settle(view)
    subject = Subject(
        use_model=resources.lender(choice),
        size=size,
        whole=whole,
        step=str(step),
        sort=view.sort,
        top=view.top,
        scale=scale,
        colormap=colormap,
        signed_colormap=signed_colormap,
    )
    token = streams().offer(session(), st.context.cookies.get(_COOKIE, ""), subject)
    st.session_state[_OFFERED] = True
    drawn = (model.name, model.digest, size, whole, step, view, colormap, signed_colormap)
    side, seen = frame_geometry(model, size=size, whole=whole)
    live(
        {
            "path": f"{st.get_option('server.baseUrlPath').strip('/')}/hookviz/live".lstrip("/"),
            "token": token,
            "side": side,
            "seen": seen,
            "subject": hashlib.blake2b(repr(drawn).encode(), digest_size=8).hexdigest(),
            "layer": str(step),
            "random": model.weights == "random",
        },
        on_pick=choose_channel,
        on_freeze=freeze,
    )


def leave() -> None:
    """End the stream of a session that looks at something else."""
    if st.session_state.pop(_OFFERED, False):
        streams().withdraw(session())


def frame_geometry(model: Model, *, size: int | None, whole: bool) -> tuple[int, float | None]:
    """How large a frame should be, and how much of it the network sees.

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

"""A run of a lens: with progress, a way to stop it, and the result kept in the session."""

import hashlib
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from hookviz.drawing.panels import GridPanel, ImagePanel, MapsPanel, Panel, PicturesPanel
from hookviz.errors import HookVizError
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.result import LensResult
from hookviz.lenses.contract.running import look
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui.lenses.channel_lead import lead_to
from hookviz.ui.lenses.image_lead import lead_to_image
from hookviz.ui.lenses.lens_result import Ways, show_result
from hookviz.ui.lenses.lens_widgets import draw_parameters, drawn_parameters, pick_parameters
from hookviz.ui.serving import resources
from hookviz.ui.serving.turns import turn
from hookviz.ui.state import Shown, plain
from hookviz.wording import time_left

_BESIDE = (1, 3)  # of the width: a picture that is drawn on, and what the lens shows
_PATIENCE = 0.5  # seconds after which a person wants to know how far it is


def show_lens(
    lens: Lens, model: Model, model_input: ModelInput, shown: Shown, layer: LayerInfo
) -> LensResult | None:
    """The lens's widgets, its run with progress and a way to stop it, and its result, if any."""
    st.header(lens.question, anchor=False)
    st.caption(f"**{plain(lens.title)}** · {plain(lens.sentence)}")
    subject = Subject(model, model_input, shown.image, resources.session_cache())
    chosen = pick_parameters(lens, subject, layer)
    place: AbstractContextManager[Any] = nullcontext()
    if drawn_parameters(lens):
        beside, place = st.columns(_BESIDE, gap="medium")
        with beside:
            chosen |= draw_parameters(lens, subject)
    with place:
        return _show_found(lens, subject, chosen)


def _show_found(lens: Lens, subject: Subject, chosen: dict[str, Any]) -> LensResult | None:
    """The lens's result, of this run or kept from one before; or why there is none."""
    cache = resources.session_cache()
    model, model_input = subject.model, subject.model_input
    key = ("lens", lens.slug, model.name, model.digest, model_input.digest, _fingerprint(chosen))
    waiting = st.empty()  # whether it runs or not, what follows stays where it is
    shelf = st.empty()  # while it runs, nothing stands here of what was shown before
    result: LensResult | None = cache.get(key)
    if result is None:
        with waiting.container():
            result = _run_or_say(lens, subject, chosen, key)
        if result is None:
            return None
        waiting.empty()
        cache.put(key, result, _nbytes(result))
    with shelf.container():
        shown = subject.image.digest if subject.image is not None else ""
        to_image = partial(lead_to_image, shown=shown)
        show_result(result, Ways(partial(lead_to, subject.survey), to_image, model))
        _show_end(lens, model, result)
    return result


def _run_or_say(
    lens: Lens, subject: Subject, chosen: dict[str, Any], key: tuple[str, ...]
) -> LensResult | None:
    """The result, or in its place why there is none."""
    if st.session_state.get("stopped") == key:
        st.info("Stopped.", icon=":material/pause:")
        st.button("Run it", on_click=st.session_state.pop, args=("stopped",))
        return None
    try:
        return _run(lens, subject, chosen, key)
    except HookVizError as error:
        st.info(plain(str(error)), icon=":material/info:")
        return None


def _show_end(lens: Lens, model: Model, result: LensResult) -> None:
    """The numbers to keep, and how long they took."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.download_button(
            "The numbers as NPZ",
            result.npz,
            f"{model.name}-{lens.slug}.npz",
            "application/octet-stream",
            icon=":material/download:",
            on_click="ignore",
        )
        st.caption(f"took {result.seconds * 1000:,.0f} ms")


def _run(lens: Lens, subject: Subject, chosen: dict[str, Any], key: tuple[str, ...]) -> LensResult:
    """One run, with a bar and a button that ends it where it takes longer than half a second."""
    bar, button = st.empty(), st.empty()
    started = time.perf_counter()
    offered = False

    def report(share: float) -> None:
        nonlocal offered
        elapsed = time.perf_counter() - started
        if elapsed < _PATIENCE:
            return
        done = min(1.0, max(0.0, share))
        bar.progress(done, f"{lens.title}… {time_left(done, elapsed)}".rstrip())
        if not offered:  # a click on it starts the page again, which ends this run here
            button.button("Stop", on_click=_stop, args=(key,), icon=":material/stop:")
            offered = True

    with (
        turn(lens.title, lens.slug, model=subject.model.name) as turn_,
        st.spinner(f"{lens.title}…", show_time=False),
    ):
        started = time.perf_counter()  # the wait in the queue has a face of its own
        within = turn_.within(report)
        result = look(lens, replace(subject, progress=within), chosen)
    bar.empty()
    button.empty()
    return result


def _stop(key: tuple[str, ...]) -> None:
    st.session_state["stopped"] = key


def _fingerprint(chosen: dict[str, Any]) -> str:
    """What tells one choice from another."""
    parts = [
        (name, [image.digest for image in value] if isinstance(value, list) else value)
        for name, value in sorted(chosen.items())
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _nbytes(result: LensResult) -> int:
    """About how much memory a result takes."""
    numbers = sum(np.asarray(value).nbytes for value in result.values.values())
    pictures = sum(map(_picture_bytes, result.panels))
    return numbers + pictures + 100_000


def _picture_bytes(panel: Panel) -> int:
    if isinstance(panel, MapsPanel):
        return sum(each.picture.nbytes + each.colours.nbytes for each in panel.maps)
    if isinstance(panel, PicturesPanel):
        return sum(picture.nbytes for picture in panel.pictures if picture is not None)
    if isinstance(panel, GridPanel):
        return panel.grid.levels.nbytes
    return panel.picture.nbytes if isinstance(panel, ImagePanel) else 0

"""Run a lens with progress and *Stop*, show its partial results, and cache the last one."""

import hashlib
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.cache import ByteCache
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.lenses.contract.lens import Lens, LensResult, Subject
from hookviz.lenses.contract.running import look
from hookviz.serving.memory_reservations import pass_need
from hookviz.types import LayerInfo, Model, ModelInput
from hookviz.ui import streamlit_internals
from hookviz.ui.lenses.leads import lead_to_channel, lead_to_image
from hookviz.ui.lenses.lens_result import PanelCallbacks, show_result
from hookviz.ui.lenses.lens_widgets import (
    offered_part,
    pick_parameters,
    pick_part,
    pick_region_parameters,
    region_parameters,
    within_link,
)
from hookviz.ui.run_bar import RunBar
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.serving.resources import class_cache, computed_once
from hookviz.ui.state import ImageChoice, chosen_sample, plain

_BESIDE = (1, 3)  # of the width: a picture that is drawn on, and what the lens shows
_STOPPED = "stopped"  # the session's name for the key of the run that was stopped last
_FRAME_S = 0.16  # between two pictures: six a second are a movement
_LENS_SHARE = 4  # the lens runs four times as long as the page takes to draw its last picture


@dataclass(frozen=True, eq=False, slots=True)
class CachedResult:
    """Result of a lens as a session caches it.

    Attributes:
        result: the result, or the last partial one.
        share: how far the run was, 0…1.
        is_complete: whether the run went to its end.
    """

    result: LensResult
    share: float = 1.0
    is_complete: bool = True


class Growth:
    """Draws partial results, at most six a second and in a fifth of the run's time."""

    def __init__(
        self,
        show: Callable[[LensResult], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Draw by `show`, which replaces the result before; `clock` returns seconds."""
        self._show, self._clock = show, clock
        self._due = clock()

    def show_if_due(self, result: LensResult) -> None:
        """Draw a partial result, if the last one was drawn long enough ago."""
        began = self._clock()
        if began < self._due:
            return
        self._show(result)
        ended = self._clock()
        self._due = max(began + _FRAME_S, ended + _LENS_SHARE * (ended - began))


class Redrawn:
    """Part of the page that is drawn again and again in one run, controls and all.

    Elements of the same kind in the same order are changed in place, from one run to the next too,
    so that nothing jumps. Streamlit refuses a key that comes twice in a run; here the second takes
    the place of the first.
    """

    def __init__(self, *, clear: bool) -> None:
        """Start at the present position; without `clear` an earlier run's elements stay."""
        self._around = st.container()
        self._slot: DeltaGenerator | None = self._around.empty() if clear else None
        self._own: list[frozenset[str]] = []

    def draw(self, show: Callable[[], None], *, once: bool = False) -> None:
        """Draw the part by `show`; with `once` for the last time in this run."""
        if once and self._slot is None:
            with self._around.container():
                show()
            return
        names = streamlit_internals.registered_widgets()
        for known, own in zip(names, self._own, strict=False):
            others = known.snapshot() - own
            known.clear()
            for name in others:
                known.check_and_add(name)
        before = [known.snapshot() for known in names]
        # Not sooner: it removes the elements of the run before.
        self._slot = self._slot or self._around.empty()
        with self._slot.container():
            show()
        self._own = [known.snapshot() - was for known, was in zip(names, before, strict=True)]


@dataclass(frozen=True, eq=False)
class _Request:
    """Lens, model, image and parameters of a run, with the caches of its result."""

    lens: Lens
    subject: Subject
    chosen: dict[str, Any]
    of_class: ByteCache | None = None

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Key of the result in the session's cache."""
        model, model_input = self.subject.model, self.subject.model_input
        asked = (model.name, model.digest, model_input.digest, _fingerprint(self.chosen))
        return ("lens", current(), self.lens.slug, *asked)

    def cached(self) -> CachedResult | None:
        """Return the result that the session or its class has cached, if any."""
        cached: CachedResult | None = self._cache.get(self.key)
        if self.of_class is not None and (cached is None or not cached.is_complete):
            self.of_class.hand_over(self._cache, self.key)
            cached = self._cache.get(self.key)
        return cached

    def cache(self, cached: CachedResult) -> CachedResult:
        """Cache a result in the session, and a complete one for its class too."""
        self._cache.put(self.key, cached, _nbytes(cached.result))
        if self.of_class is not None and cached.is_complete:
            self._cache.hand_over(self.of_class, self.key)
        return cached

    @property
    def _cache(self) -> ByteCache:
        # Streamlit is not asked again: it would end a run that is being ended there.
        assert self.subject.cache is not None
        return self.subject.cache

    def show(self, result: LensResult) -> None:
        """Draw the panels; their channels and images lead to the explorer."""
        image, model = self.subject.image, self.subject.model
        to_image = partial(lead_to_image, current=image.digest if image is not None else "")
        show_result(
            result, PanelCallbacks(partial(lead_to_channel, self.subject.trace), to_image, model)
        )


def show_lens(
    lens: Lens, model: Model, model_input: ModelInput, image_choice: ImageChoice, layer: LayerInfo
) -> LensResult | None:
    """Show a lens's widgets, its run with progress and *Stop*, and its result, if any."""
    with st.container(horizontal=True, vertical_alignment="center", key="hv-lens", gap="small"):
        st.header(say(lens.question), anchor=False, width="content")
        st.caption(f"**{plain(say(lens.title))}** · {plain(say(lens.sentence))}")
        above = st.container(key="hv-run", width="content").empty()
    is_own = image_choice.file is None
    image = image_choice.image if is_own else resources.decode_sample(chosen_sample())  # by title
    subject = Subject(model, model_input, image, resources.session_cache())
    with above.container():  # a wait for a turn moves nothing below it
        part = offered_part(lens, subject)
        asked = within_link(subject) if part else subject
    chosen = pick_parameters(lens, asked, layer)
    column: AbstractContextManager[Any] = nullcontext()
    if part or region_parameters(lens):
        beside, column = st.columns(_BESIDE, gap="medium")
        with beside:
            chosen |= pick_region_parameters(lens, subject)
            chosen |= pick_part(part, subject) if part else {}
    with column:
        cached = _show_or_run(_Request(lens, subject, chosen, class_cache()), above)
        return cached.result if cached is not None else None


def _show_or_run(request: _Request, above: DeltaGenerator) -> CachedResult | None:
    """Show the lens's result, cached or of a new run; or why there is none.

    `above` is an element in the row of the lens's name, for the run's bar and buttons. The panels
    below stand where they are, whether the lens runs or not.
    """
    cached, error_text = request.cached(), ""
    is_stopped = st.session_state.get(_STOPPED) == request.key
    below = Redrawn(clear=cached is None)
    if cached is None and is_stopped:
        with _row(above):
            st.markdown(":material/pause: " + say("Stopped."), width="content")
            st.button(say("Run it"), on_click=_go_on)
        return None
    if cached is None or not (cached.is_complete or is_stopped):
        try:
            with _row(above):
                cached = _run(request, below, cached)
        except HookVizError as error:
            cached, error_text = request.cached(), plain(str(error))
            if cached is not None:
                _stop(request.key)  # a run over its limit goes on at a click
    if cached is None:
        above.empty()
    else:
        with _row(above):
            _show_end(request, cached)

    def show() -> None:
        if error_text:
            st.info(error_text, icon=":material/info:")
        if cached is not None:
            request.show(cached.result)

    below.draw(show, once=True)
    return cached


def _row(container: DeltaGenerator) -> DeltaGenerator:
    """Replace an element by a row, for a run's bar or buttons."""
    row: DeltaGenerator = container.container(horizontal=True, vertical_alignment="center")
    return row


def _show_end(request: _Request, cached: CachedResult) -> None:
    """Show the file of numbers, the time it took, and *Go on* after a stopped run."""
    if not cached.is_complete:
        st.markdown(
            ":material/pause: " + say("Stopped at {share:.0f} %", share=100 * cached.share),
            width="content",
        )
        st.button(say("Go on"), on_click=_go_on, icon=":material/play_arrow:")
    st.download_button(
        say("The numbers as NPZ"),
        cached.result.npz,
        f"{request.subject.model.name}-{request.lens.slug}.npz",
        "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(say("took {seconds:,.0f} ms", seconds=cached.result.seconds * 1000), width="content")


def _run(request: _Request, below: Redrawn, before: CachedResult | None) -> CachedResult:
    """Run the lens with a bar and *Stop*; show and cache each partial result.

    Args:
        request: the lens, its subject and parameters.
        below: draws the partial results.
        before: the last partial result of an earlier run, with which this one starts.
    """
    lens, model = request.lens, request.subject.model
    need = pass_need(model, request.subject.model_input, keeps_all=True)
    bar = RunBar(say(lens.title), partial(_stop, request.key), before.share if before else 0.0)

    def draw(result: LensResult) -> None:
        bar.show()  # first: later it would move the picture
        below.draw(partial(request.show, result))

    growth = Growth(draw)

    def take_partial(result: LensResult) -> None:
        # Each is cached: at a click Streamlit starts the page's next run before this one ends.
        request.cache(CachedResult(result, bar.share, is_complete=False))
        growth.show_if_due(result)

    with (
        computed_once(request.key, request.of_class),
        turn(say(lens.title), lens.slug, model=model.name, need=need) as slot,
        ExitStack() as until,
    ):
        cached = request.cached()
        if cached is not None and cached.is_complete:  # by another screen of the class
            return cached
        until.enter_context(st.spinner(f"{say(lens.title)}…", show_time=False))
        bar.start(slot, until.close)
        if before is not None:
            draw(before.result)
        subject = replace(request.subject, progress=slot.yielding(bar.report, bar.wait))
        result = look(lens, subject, request.chosen, partial=take_partial)
        result = replace(result, seconds=result.seconds - slot.yielded)
    bar.end()
    return request.cache(CachedResult(result))


def _stop(key: tuple[str, ...]) -> None:
    st.session_state[_STOPPED] = key


def _go_on() -> None:
    st.session_state.pop(_STOPPED, None)


def _fingerprint(chosen: dict[str, Any]) -> str:
    """Hash the chosen parameters, images by their digests."""

    def value_key(value: Any) -> Any:
        if isinstance(value, list):
            return [image.digest for image in value]
        return value.digest if isinstance(value, ModelInput) else value

    parts = [(name, value_key(value)) for name, value in sorted(chosen.items())]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _nbytes(result: LensResult) -> int:
    """Estimate the bytes of memory that a result takes."""
    numbers = sum(np.asarray(value).nbytes for value in result.values.values())
    pictures = sum(panel.picture_bytes for panel in result.panels)
    return numbers + pictures + 100_000

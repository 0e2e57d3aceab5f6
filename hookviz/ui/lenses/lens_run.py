"""Run a lens with progress and a way to stop it, and keep the result in the session."""

import hashlib
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
from hookviz.ui.lenses.growth import Growth, KeptResult, Redrawn
from hookviz.ui.lenses.leads import lead_to_channel, lead_to_image
from hookviz.ui.lenses.lens_result import PanelCallbacks, show_result
from hookviz.ui.lenses.lens_widgets import draw_parameters, drawn_parameters, pick_parameters
from hookviz.ui.lenses.part_choice import offered_part, pick_part, within_link
from hookviz.ui.run_bar import RunBar
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.serving.resources import class_cache, computed_once
from hookviz.ui.state import Shown, plain

_BESIDE = (1, 3)  # of the width: a picture that is drawn on, and what the lens shows
_STOPPED = "stopped"  # where the session has the key of the run that was stopped last


@dataclass(frozen=True, eq=False)
class _Request:
    """Lens, model, image and parameters that a run is for, with the caches of its result."""

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

    def kept(self) -> KeptResult | None:
        """Return the result that the session or its class keeps, if any."""
        kept: KeptResult | None = self._cache.get(self.key)
        if self.of_class is not None and (kept is None or not kept.whole):
            self.of_class.hand_over(self._cache, self.key)
            kept = self._cache.get(self.key)
        return kept

    def keep(self, kept: KeptResult) -> KeptResult:
        """Keep a result in the session, and a whole one for its class too."""
        self._cache.put(self.key, kept, _nbytes(kept.result))
        if self.of_class is not None and kept.whole:
            self._cache.hand_over(self.of_class, self.key)
        return kept

    @property
    def _cache(self) -> ByteCache:
        # Not asked of Streamlit anew, which in a run that is being ended would end it there.
        assert self.subject.cache is not None
        return self.subject.cache

    def show(self, result: LensResult) -> None:
        """Show the panels, with where they lead to."""
        image, model = self.subject.image, self.subject.model
        to_image = partial(lead_to_image, shown=image.digest if image is not None else "")
        show_result(
            result, PanelCallbacks(partial(lead_to_channel, self.subject.trace), to_image, model)
        )


def show_lens(
    lens: Lens, model: Model, model_input: ModelInput, shown: Shown, layer: LayerInfo
) -> LensResult | None:
    """Show a lens's widgets, its run with progress and *Stop*, and its result, if any."""
    with st.container(horizontal=True, vertical_alignment="center", key="hv-lens", gap="small"):
        st.header(say(lens.question), anchor=False, width="content")
        st.caption(f"**{plain(say(lens.title))}** · {plain(say(lens.sentence))}")
        above = st.container(key="hv-run", width="content").empty()
    subject = Subject(model, model_input, shown.image, resources.session_cache())
    with above.container():  # a wait for a turn moves nothing below it
        part = offered_part(lens, subject)
        asked = within_link(subject) if part else subject
    chosen = pick_parameters(lens, asked, layer)
    column: AbstractContextManager[Any] = nullcontext()
    if part or drawn_parameters(lens):
        beside, column = st.columns(_BESIDE, gap="medium")
        with beside:
            chosen |= draw_parameters(lens, subject)
            chosen |= pick_part(part, subject) if part else {}
    with column:
        kept = _show_kept(_Request(lens, subject, chosen, class_cache()), above)
        return kept.result if kept is not None else None


def _show_kept(request: _Request, above: DeltaGenerator) -> KeptResult | None:
    """Show the lens's result, of this run or kept from one before; or why there is none.

    `above` is the place for what belongs to the run, in the row of the lens's name: whether it runs
    or not, what follows stays where it is.
    """
    kept, why = request.kept(), ""
    stopped = st.session_state.get(_STOPPED) == request.key
    below = Redrawn(clear=kept is None)
    if kept is None and stopped:
        with _row(above):
            st.markdown(":material/pause: " + say("Stopped."), width="content")
            st.button(say("Run it"), on_click=_go_on)
        return None
    if kept is None or not (kept.whole or stopped):
        try:
            with _row(above):
                kept = _run(request, below, kept)
        except HookVizError as error:
            kept = request.kept()
            if kept is None:
                above.empty()
                words = plain(str(error))
                below.draw(lambda: _say(words), once=True)
                return None
            why = plain(str(error))
            _stop(request.key)  # what took too long goes on when somebody wants it to
    with _row(above):
        _show_end(request, kept)
    final = kept

    def show() -> None:
        if why:
            _say(why)
        request.show(final.result)

    below.draw(show, once=True)
    return final


def _say(why: str) -> None:
    st.info(why, icon=":material/info:")


def _row(container: DeltaGenerator) -> DeltaGenerator:
    """Return a row for what belongs to a run, which replaces what stood there."""
    row: DeltaGenerator = container.container(horizontal=True, vertical_alignment="center")
    return row


def _show_end(request: _Request, kept: KeptResult) -> None:
    """Offer the numbers, how long they took, and a way to go on where the run was stopped."""
    if not kept.whole:
        st.markdown(
            ":material/pause: " + say("Stopped at {share:.0f} %", share=100 * kept.share),
            width="content",
        )
        st.button(say("Go on"), on_click=_go_on, icon=":material/play_arrow:")
    st.download_button(
        say("The numbers as NPZ"),
        kept.result.npz,
        f"{request.subject.model.name}-{request.lens.slug}.npz",
        "application/octet-stream",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption(say("took {seconds:,.0f} ms", seconds=kept.result.seconds * 1000), width="content")


def _run(request: _Request, below: Redrawn, before: KeptResult | None) -> KeptResult:
    """Run the lens with a bar and a button that ends it; show and keep each partial result.

    Args:
        request: what is asked for.
        below: where what there is so far is shown.
        before: what there was when an earlier run was ended.
    """
    lens, model = request.lens, request.subject.model
    need = pass_need(model, request.subject.model_input, keeps_all=True)
    bar = RunBar(say(lens.title), partial(_stop, request.key), before.share if before else 0.0)

    def draw(result: LensResult) -> None:
        bar.show()  # before the picture, which it would move if it came later
        below.draw(partial(request.show, result))

    growth = Growth(draw)

    def take(result: LensResult) -> None:
        # Each is kept, and not the last one at the end: at a click Streamlit starts the page's
        # next run before this one has ended.
        request.keep(KeptResult(result, bar.share, whole=False, grew=True))
        growth.take(result)

    with (
        computed_once(request.key, request.of_class),
        turn(say(lens.title), lens.slug, model=model.name, need=need) as held,
        ExitStack() as until,
    ):
        kept = request.kept()
        if kept is not None and kept.whole:  # another screen of the class has computed it
            return kept
        until.enter_context(st.spinner(f"{say(lens.title)}…", show_time=False))
        bar.start(held, until.close)
        if before is not None:
            draw(before.result)
        subject = replace(request.subject, progress=held.yielding(bar.report, bar.wait))
        result = look(lens, subject, request.chosen, partial=take)
        result = replace(result, seconds=result.seconds - held.yielded)
    bar.end()
    return request.keep(KeptResult(result, grew=growth.began))


def _stop(key: tuple[str, ...]) -> None:
    st.session_state[_STOPPED] = key


def _go_on() -> None:
    st.session_state.pop(_STOPPED, None)


def _fingerprint(chosen: dict[str, Any]) -> str:
    """Hash the chosen parameters, so that a result is kept again by them."""
    parts = [
        (name, [image.digest for image in value] if isinstance(value, list) else _digest(value))
        for name, value in sorted(chosen.items())
    ]
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _digest(value: Any) -> Any:
    return value.digest if isinstance(value, ModelInput) else value


def _nbytes(result: LensResult) -> int:
    """Estimate the bytes of memory that a result takes."""
    numbers = sum(np.asarray(value).nbytes for value in result.values.values())
    pictures = sum(panel.picture_bytes for panel in result.panels)
    return numbers + pictures + 100_000

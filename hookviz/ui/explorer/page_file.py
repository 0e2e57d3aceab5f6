"""Offer the explorer of the image as one HTML file, made with progress and a way to stop it."""

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from hookviz.capturing import engine
from hookviz.errors import HookVizError
from hookviz.explorer.subject import at_once
from hookviz.language.saying import say
from hookviz.serving.memory_reservations import pass_need
from hookviz.standalone.saving import page_bytes, room_for
from hookviz.types import LayerInfo, Model
from hookviz.ui.explorer.scene import ExplorerScene, view_in_link
from hookviz.ui.run_bar import RunBar
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_answers import subject_of
from hookviz.ui.serving.explorer_sessions import Scene
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import plain
from hookviz.wording import byte_size


def offer_page(scene: ExplorerScene, layers: Sequence[LayerInfo]) -> None:
    """Show a button that makes the page of these layers; once it is made, the file.

    Another layer, cell or sort of the same image and network is in the page already.
    """
    with resources.use_model(scene.choice) as model:
        handed_over = scene.handed_over(model, is_compared=False)
        cache = resources.session_cache()
        is_on_map = view_in_link().inside is not None
        key = ("page", handed_over.key, is_on_map, *(layer.name for layer in layers))
        made: bytes | None = cache.get(key)
        place = st.empty()
        if made is None and place.button(
            say("Make a page"),
            key="hv-make-page",
            help=say("One HTML file with all these layers: it opens without a server."),
            width="stretch",
        ):
            with st.container(horizontal=True, vertical_alignment="center"):
                bar = RunBar(say("Page"))
                try:
                    made = _make(handed_over, model, layers, bar)
                except HookVizError as error:
                    st.info(plain(str(error)), icon=":material/info:")
                else:
                    cache.put(key, made, len(made))
                    place.empty()
                bar.end()
    if made is not None:
        st.download_button(
            say("Page as HTML, {size}", size=byte_size(len(made))),
            made,
            f"{scene.choice.spec.name}.html",
            "text/html",
            key="hv-page",
            on_click="ignore",
            width="stretch",
        )


def _make(handed_over: Scene, model: Model, layers: Sequence[LayerInfo], bar: RunBar) -> bytes:
    """Make the page in one turn, in which others are let in after each layer."""
    need = pass_need(model, handed_over.model_input)
    with turn(say("Page"), "page", model=model.name, need=need) as held:
        bar.start(held)
        capture = engine.capture(
            model,
            handed_over.model_input,
            [layer.name for layer in layers],
            cache=handed_over.cache,
            progress=held.limit.within(),
        )
        subject = subject_of(handed_over, model, at_once)
        subject = replace(subject, cache=room_for(capture), shared=None)
        return page_bytes(
            subject, layers, view=view_in_link(), progress=held.yielding(bar.report, bar.wait)
        )

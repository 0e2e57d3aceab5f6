"""Capture the layer on the screen: kept from before, or computed in a turn with progress."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from hookviz.capturing import engine
from hookviz.language.saying import say
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.serving import resources
from hookviz.ui.serving.class_cache import class_cache
from hookviz.ui.serving.queue_wait import turn

_PATIENCE = 0.5  # seconds after which a person wants to know how far it is


def capture_layer(model: Model, model_input: ModelInput, layer: str) -> Capture:
    """Return the layer's capture, from the session's cache, its class's, or a pass of its own.

    Raises:
        HookVizError: the pass can't be run, or took longer than one may.
    """
    cache, of_class = resources.session_cache(), class_cache()
    key = (model.name, model.digest, model_input.digest)
    if of_class is not None and not engine.is_cached(model, model_input, layer, cache):
        of_class.hand_over(cache, key)
    queue_bar = st.empty()  # and again in the end, so that what follows stands where it stood
    if engine.is_cached(model, model_input, layer, cache):  # which needs no turn, nor a bar
        return engine.capture(model, model_input, layer, cache=cache)
    own_turn = turn(model.title, model=model.name, layer=layer)
    with queue_bar.container(), own_turn as run, _progress_bar(model) as report:
        if of_class is not None:  # who had the turn before may have been of the class
            of_class.hand_over(cache, key)
        capture = engine.capture(
            model, model_input, layer, cache=cache, progress=run.limit.within(report)
        )
        if of_class is not None and capture.forward_passes:
            cache.hand_over(of_class, key)
    queue_bar.empty()
    return capture


@contextmanager
def _progress_bar(model: Model) -> Iterator[Callable[[float], None]]:
    """Show a progress bar only when a run takes longer than half a second."""
    bar = st.empty()
    started = time.perf_counter()

    def report(share: float) -> None:
        if time.perf_counter() - started > _PATIENCE:
            bar.progress(share, say("Running {model}…", model=model.title))

    yield report
    bar.empty()

"""Put together what the explorer is about, out of what the page's widgets chose."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st

from hookviz.capturing.cache import ByteCache
from hookviz.explorer.layers import resolve
from hookviz.explorer.rendering import RenderedGrid, render
from hookviz.explorer.subject import Run, Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.serving.memory_reservations import pass_need
from hookviz.serving.turns import WatchedRun
from hookviz.types import ActivationKey, LayerInfo, Model, ModelInput, Progress
from hookviz.ui.explorer.atlas_choice import atlas_words, shown_atlas
from hookviz.ui.explorer.image_of_patch import sample_names
from hookviz.ui.explorer.pinned_view import image_title, model_title, pinned_scene
from hookviz.ui.link import words
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_answers import subject_of
from hookviz.ui.serving.explorer_sessions import Scene
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import ModelChoice, Shown
from hookviz.ui.theme import colours

_PATIENCE = 0.5  # seconds after which a person wants to know how far it is


@dataclass(frozen=True, slots=True)
class ExplorerScene:
    """The image and network that the page's widgets chose.

    Streamlit keeps what a fragment is given until the page runs again, so no model is in it.

    Attributes:
        shown: the image.
        choice: the network.
        model_input: what the network is given.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        shared: keeps what everybody's passes over a sample put out; None for an image or weights
            of one's own.
    """

    shown: Shown
    choice: ModelChoice
    model_input: ModelInput
    size: int | None
    whole: bool
    shared: ByteCache | None = None

    def handed_over(
        self,
        model: Model,
        *,
        is_compared: bool = True,
        offered: Sequence[LayerInfo] = (),
        begins_at: str = "",
    ) -> Scene:
        """Return all that questions are about, for the threads that answer them.

        To find what is pinned loads its network: where nothing is compared it is left out.
        `offered` are the layers that a lens can look at, and `begins_at` is where it does at first.
        """
        return Scene(
            choice=self.choice,
            model_digest=model.digest,
            model_input=self.model_input,
            image=self.shown.image,
            cache=resources.session_cache(),
            alt=self.shown.alt,
            image_title=image_title(self.shown),
            model_title=model_title(self.choice.spec.title, self.choice.weights, self.choice.mask),
            shared=self.shared,
            colours=colours(),
            pinned=pinned_scene() if is_compared else None,
            atlas=shown_atlas(model),
            atlas_words=atlas_words(model),
            image_names=sample_names(),
            offered=offered,
            begins_at=begins_at,
        )


def view_in_link() -> View:
    """Return what the link says of the explorer, as it is now."""
    return View.of_link(words())


def step_now(scene: ExplorerScene) -> ActivationKey:
    """Return whose output the explorer shows now; no pass is run for it.

    Raises:
        HookVizError: it shows nothing, or the network can't be had.
    """
    with resources.use_model(scene.choice) as model:
        return resolve(subject_now(scene.handed_over(model), model), view_in_link()).step


def drawn_now(scene: ExplorerScene) -> RenderedGrid:
    """Return what the explorer shows now, for a menu that is opened or a button that is pressed.

    Raises:
        HookVizError: it shows nothing.
    """
    with resources.use_model(scene.choice) as model:
        return render(subject_now(scene.handed_over(model), model), view_in_link())


def subject_now(handed_over: Scene, model: Model) -> Subject:
    """Return what answers about a scene are about, for the page's own run."""

    @contextmanager
    def take_turn(
        network: Model, model_input: ModelInput, label: str, kind: str, layer: str
    ) -> Iterator[Run]:
        place = st.empty()  # and again in the end, so that what follows stands where it stood
        need = pass_need(network, model_input)
        with place.container(), turn(label, kind, model=model.name, layer=layer, need=need) as slot:
            yield WatchedRun(slot, _ignore, _progress_bar(label), _ignore)
        place.empty()

    return subject_of(handed_over, model, take_turn)


def _ignore(*_values: object) -> None:
    """Do nothing: Streamlit's own calls end a run that nobody waits for."""


def _progress_bar(label: str) -> Progress:
    """Return what shows a progress bar, only where a run takes longer than half a second."""
    bar, started = st.empty(), time.perf_counter()

    def report(share: float) -> None:
        if time.perf_counter() - started > _PATIENCE:
            bar.progress(share, say("Running {model}…", model=label))

    return report

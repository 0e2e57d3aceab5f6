"""Build the explorer's scene from the page's choices, and read its view from the link."""

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
from hookviz.ui.explorer.atlases import atlas_words, chosen_atlas
from hookviz.ui.explorer.pinned_view import image_title, model_title, pinned_scene
from hookviz.ui.link import words
from hookviz.ui.serving import resources
from hookviz.ui.serving.explorer_answers import subject_of
from hookviz.ui.serving.explorer_sessions import Scene
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.state import ImageChoice, ModelChoice, sample_names
from hookviz.ui.theme import colours

_BAR_AFTER_S = 0.5  # a run gets a progress bar


@dataclass(frozen=True, slots=True)
class ExplorerScene:
    """The image and network that the page's widgets chose.

    It holds no model: Streamlit keeps the arguments of a fragment until the page runs again.

    Attributes:
        image_choice: the image.
        choice: the network.
        model_input: the network's input.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        shared: cache of a sample's activations for all sessions; None for the session's own image
            or weights.
    """

    image_choice: ImageChoice
    choice: ModelChoice
    model_input: ModelInput
    size: int | None
    whole: bool
    shared: ByteCache | None = None

    def for_answers(
        self,
        model: Model,
        *,
        is_compared: bool = True,
        offered: Sequence[LayerInfo] = (),
        begins_at: str = "",
    ) -> Scene:
        """Return the scene for the threads that answer the explorer's questions.

        Args:
            model: the network, loaded.
            is_compared: whether to include the pinned view A, which loads its network.
            offered: layers that a lens can use.
            begins_at: the layer with which the lens starts.
        """
        return Scene(
            choice=self.choice,
            model_digest=model.digest,
            model_input=self.model_input,
            image=self.image_choice.image,
            cache=resources.session_cache(),
            alt=self.image_choice.alt,
            image_title=image_title(self.image_choice),
            model_title=model_title(self.choice.spec.title, self.choice.weights, self.choice.mask),
            shared=self.shared,
            colours=colours(),
            pinned=pinned_scene() if is_compared else None,
            atlas=chosen_atlas(model),
            atlas_words=atlas_words(model),
            image_names=sample_names(),
            offered=offered,
            begins_at=begins_at,
        )


def view_in_link() -> View:
    """Return the explorer's view in the link."""
    return View.of_link(words())


def step_now(scene: ExplorerScene) -> ActivationKey:
    """Return the key of the activation that the explorer shows, without a forward pass.

    Raises:
        HookVizError: it shows nothing, or the network can't be loaded.
    """
    with resources.use_model(scene.choice) as model:
        return resolve(subject_now(scene.for_answers(model), model), view_in_link()).step


def grid_now(scene: ExplorerScene) -> RenderedGrid:
    """Return the grid that the explorer shows, for its menus.

    Raises:
        HookVizError: it shows nothing.
    """
    with resources.use_model(scene.choice) as model:
        return render(subject_now(scene.for_answers(model), model), view_in_link())


def subject_now(scene: Scene, model: Model) -> Subject:
    """Return the subject of a scene's answers, for the page's own run."""

    @contextmanager
    def take_turn(
        network: Model, model_input: ModelInput, label: str, kind: str, layer: str
    ) -> Iterator[Run]:
        element = st.empty()  # emptied at the end, so that the elements below stay in position
        need = pass_need(network, model_input)
        with (
            element.container(),
            turn(label, kind, model=model.name, layer=layer, need=need) as slot,
        ):
            # Streamlit's own calls end a run that nobody waits for.
            yield WatchedRun(slot, lambda *_: None, _progress_bar(label), lambda *_: None)
        element.empty()

    return subject_of(scene, model, take_turn)


def _progress_bar(label: str) -> Progress:
    """Return a callback that shows a run's progress once it takes longer than half a second."""
    bar, started = st.empty(), time.perf_counter()

    def report(share: float) -> None:
        if time.perf_counter() - started > _BAR_AFTER_S:
            bar.progress(share, say("Running {model}…", model=label))

    return report

"""Draw the page: choices at the side, the model's view and its channels in the middle."""

from contextlib import nullcontext
from functools import cache, partial

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.capturing.layer_trace import input_trace
from hookviz.drawing.grid import make_grid
from hookviz.errors import HookVizError
from hookviz.explorer.layers import captured, resolve
from hookviz.explorer.rendering import look_of
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Lens
from hookviz.lessons.lesson import Lesson
from hookviz.lessons.part import LessonScene
from hookviz.markup import data_url
from hookviz.models.catalog import source_of
from hookviz.serving import capacity
from hookviz.types import Capture, Model, ModelInput
from hookviz.ui.classroom import membership
from hookviz.ui.classroom.class_bar import link_of_taught, offer_class, show_class
from hookviz.ui.components.files import mount
from hookviz.ui.explorer.atlases import show_atlases
from hookviz.ui.explorer.menus import (
    code_menu,
    download_menu,
    lens_code_menu,
    offer_pin,
    offer_silenced,
    share_menu,
)
from hookviz.ui.explorer.mounting import route_to, show_explorer, show_rows
from hookviz.ui.explorer.predictions import show_summary
from hookviz.ui.explorer.scene import ExplorerScene, subject_now, view_in_link
from hookviz.ui.languages import pick_language, speak_page_language
from hookviz.ui.lenses import lens_choice
from hookviz.ui.lenses.leads import channel_questions, class_links
from hookviz.ui.lenses.lens_choice import pick_lens
from hookviz.ui.lenses.lens_run import show_lens
from hookviz.ui.lessons import choosing
from hookviz.ui.lessons.lesson_page import show_lesson, show_lessons
from hookviz.ui.lessons.live_part import SceneChoices, fits, lessons_own
from hookviz.ui.link import address, settle_query
from hookviz.ui.live import (
    drop_scale_lock,
    explain_no_lens,
    is_live,
    leave,
    offer_live_button,
    show_rounding,
    show_stream,
)
from hookviz.ui.menu import show_menus, show_more
from hookviz.ui.presenting.presenter import show_presenter
from hookviz.ui.serving import resources, upload_limits
from hookviz.ui.serving.go_route import open_short_link
from hookviz.ui.serving.login import let_in
from hookviz.ui.sidebar.image_choice import explain_stand_in, pick_image, pick_input
from hookviz.ui.sidebar.model_choice import pick_model, silence_channels
from hookviz.ui.sidebar.weights import may_load, model_before, wait_for_weights, weights_instead
from hookviz.ui.state import ImageChoice, ModelChoice, plain
from hookviz.ui.theme import colours, head

_SIDEBAR = 300  # pixels


def show() -> None:
    """Draw the page once."""
    st.set_page_config("HookViz", _icon(), layout="wide", initial_sidebar_state=_SIDEBAR)
    settle_query()
    language = speak_page_language()
    before = st.container(key="hv-head")
    with before:
        st.html(head(language), unsafe_allow_javascript=True)
    with st.sidebar:
        with st.container(horizontal=True, vertical_alignment="center", key="hv-name"):
            st.title("HookViz", anchor=False)
            pick_language()
        buttons = st.container(horizontal=True, key="hv-ways", gap="small")
    try:
        with capacity.translate_oom(say("Drawing this page")):
            _show(buttons)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/error:")
    with before:
        _send_address()


def _send_address() -> None:
    """Send this run's view and its changes of the fragment to the browser.

    If the fragment differs, the browser answers with it, and the page runs again. It is sent last:
    a run after the browser's Back must not be taken for a click's.
    """
    known = address()
    if known.drawn is not None or known.changes:
        facts = {
            "view": known.drawn,
            "changes": known.changes,
            "number": known.number,
            "isStep": known.is_step and not known.has_query_step,
        }
        mount("address", "hv-address", facts, changed=known.receive)
    known.has_query_step, known.drawn = False, None


def _show(buttons: DeltaGenerator) -> None:
    """Draw all of the page, for visitors that are let in."""
    if not let_in():
        return
    open_short_link()
    show_presenter(link_of_taught)
    show_class()
    lesson = choosing.lesson_in_link()
    if lesson is not None:
        choosing.begin(lesson)
    with buttons:
        choosing.offer_lessons()
        offer_class()
    with st.sidebar:
        image_choice = pick_image()
        refusal = upload_limits.refusal()
        if refusal:
            st.error(plain(refusal), icon=":material/upload_file:")
        if not is_live():
            leave()
        model_block = st.container()
        settings = st.expander(say("Family, weights, input size"))
        with model_block:
            choice = pick_model(settings)
    if choosing.is_list():
        show_lessons()
        return
    explain_stand_in()
    spec, pretrained = choice.spec, choice.weights == "pretrained"
    if pretrained and spec.download_bytes and not spec.on_disk:
        wait_for_weights(spec)
        before = model_before()
        if before is not None and lesson is None:
            _show_model(image_choice, before, lesson, settings)
    elif pretrained and source_of(spec.name).build_pretrained and not may_load(spec):
        return
    elif choice.weights == "yours" and choice.checkpoint is None:
        st.info(
            say(
                "Upload weights for {model} in the sidebar: a safetensors file, or a state "
                "dict saved by torch.save.",
                model=choice.spec.title,
            ),
            icon=":material/upload:",
        )
    else:
        _show_model(image_choice, choice, lesson, settings)


@cache
def _icon() -> str:
    """Return the page's icon, nine channels of a grid, as a URL: Streamlit would encode pixels."""
    values = np.arange(9, dtype=np.float32)[::-1].reshape(9, 1, 1)
    return data_url(make_grid(values, aspect=1, width=64).png())


def _show_model(
    image_choice: ImageChoice, choice: ModelChoice, lesson: Lesson | None, settings: DeltaGenerator
) -> None:
    """Load the model, and draw with it; it is in use until the page is drawn.

    Args:
        image_choice: the image.
        choice: the model.
        lesson: the open lesson.
        settings: gets the choice of the input's size.
    """
    loading = partial(st.spinner, say("Loading {model}…", model=choice.spec.title))
    with st.sidebar:
        choice = silence_channels(choice, loading)
    with resources.use_model(choice, loading) as model:
        with settings:
            size, whole = pick_input(model)
        if lesson is not None:
            _show_lesson(lesson, image_choice, choice, model, size=size, whole=whole)
        else:
            _show_network(image_choice, choice, model, size=size, whole=whole)


def _show_lesson(
    lesson: Lesson,
    image_choice: ImageChoice,
    choice: ModelChoice,
    model: Model,
    *,
    size: int | None,
    whole: bool,
) -> None:
    """Draw a lesson in place of the network."""
    model_input = _read(image_choice, model, size=size, whole=whole)
    scene = LessonScene(model, model_input, image_choice.image, resources.session_cache())
    choices = SceneChoices(image_choice, choice, size, whole)
    own = None if fits(lesson, scene) else lessons_own(lesson, choices)
    if own is None:
        show_lesson(lesson, scene, choices)
        return
    with own.scene() as own_scene:
        show_lesson(lesson, own_scene, own, instead_of=model.title)


def _show_network(
    image_choice: ImageChoice, choice: ModelChoice, model: Model, *, size: int | None, whole: bool
) -> None:
    """Draw everything below the choice of a model, in the order in which it is needed."""
    header = st.container(
        horizontal=True, vertical_alignment="center", key="hv-header", gap="small"
    )
    with st.sidebar:
        live = is_live()
        if live:
            explain_no_lens()
        lens = None if live else pick_lens()
    model_input = _read(image_choice, model, size=size, whole=whole)
    shared = resources.sample_cache(choice)
    drop_scale_lock()
    scene = ExplorerScene(image_choice, choice, model_input, size, whole, shared)
    if lens is not None:
        _show_through(lens, scene, model, header)
    elif live:
        _show_live(scene, model)
    elif lens_choice.is_list():
        _show_lenses(scene, model, header)
    else:
        _show_explorer(scene, model, header)


def _show_lenses(scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the page of all lenses, whose cards request their pictures one by one."""
    answer_scene = scene.for_answers(model, is_compared=False)
    lens_choice.show_list(route_to(answer_scene))
    subject = subject_now(answer_scene, model)
    with header:
        _show_summary(scene, captured(subject, resolve(subject, view_in_link())), model)
        show_menus(share_menu(scene.image_choice))


def _show_summary(scene: ExplorerScene, capture: Capture, model: Model) -> None:
    """Draw the input and the classes; a class leads to the lens that shows its evidence."""
    count = 0 if capture.logits is None else len(capture.logits)
    lens_link = class_links(capture.categories, count)
    show_summary(capture, model, scene.image_choice, lens_link, instead=weights_instead())


def _show_explorer(scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the explorer, whose client requests its content without a run of the page."""
    show_atlases(model, scene.choice)
    answer_scene = scene.for_answers(model)
    # first: its client shows by itself that it waits
    show_explorer(scene, answer_scene, channel_questions())
    subject = subject_now(answer_scene, model)
    with header:
        _show_summary(scene, captured(subject, resolve(subject, view_in_link())), model)
        lens_choice.offer_list()
        choosing.offer_lesson_button()
        offer_live_button()
        show_more(
            share_menu(scene.image_choice),
            download_menu(scene),
            code_menu(scene),
            above=partial(offer_pin, scene),
        )


def _show_live(scene: ExplorerScene, model: Model) -> None:
    """Draw the stream in place of the channels of one image."""
    show_rounding(model)  # before the rows, whose tree is long
    answer_scene = scene.for_answers(model, is_compared=False)
    resolved = show_rows(answer_scene, subject_now(answer_scene, model), has_look=True)
    look = look_of(view_in_link(), colours(), resolved.layer.output_shape[0])
    teaches = membership.taught() is not None
    show_stream(
        model, scene.choice, resolved, look, size=scene.size, whole=scene.whole, teaches=teaches
    )


def _show_through(lens: Lens, scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the lens in place of the channels."""
    image_choice, model_input = scene.image_choice, scene.model_input
    trace = input_trace(model, model_input)
    # without a fitting layer any: the lens itself refuses it
    offered = lens_choice.layers_for(lens, trace) or trace.layers
    begins_at = lens_choice.begins_at(lens, trace)
    answer_scene = scene.for_answers(model, is_compared=False, offered=offered, begins_at=begins_at)
    subject = subject_now(answer_scene, model)
    around = st.container()
    with around:
        resolved = show_rows(answer_scene, subject)
        lens_choice.warn_of_other_layer(lens, trace, resolved.layer.name)
    capture = captured(subject, resolved)
    with header:
        _show_summary(scene, capture, model)
        lens_choice.offer_list()
        choosing.offer_lesson_button()
        offer_live_button()
        silenced = st.container(width="content")
        menus = st.container(horizontal=True, width="content")
    with around:
        result = show_lens(lens, model, model_input, image_choice, resolved.layer)
    if result is not None:
        with silenced:
            offer_silenced(result, scene, model)
    with menus:
        code = [lens_code_menu(result, scene)] if result is not None else []
        show_more(share_menu(image_choice), *code)


def _read(image_choice: ImageChoice, model: Model, *, size: int | None, whole: bool) -> ModelInput:
    """Return the network's input, once its layers are traced."""
    key = (model.digest, image_choice.image.digest, size, whole)
    is_known = st.session_state.get("_read") == key  # a spinner starts a thread
    with nullcontext() if is_known else st.spinner(say("Reading the network…")):
        model_input = resources.prepare(model, image_choice.image, size=size, whole=whole)
        input_trace(model, model_input)
    st.session_state["_read"] = key
    return model_input

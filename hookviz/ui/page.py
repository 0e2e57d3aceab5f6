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
from hookviz.ui.address import hand_over_address
from hookviz.ui.classroom import membership
from hookviz.ui.classroom.class_bar import show_class
from hookviz.ui.classroom.class_code import link_of_taught
from hookviz.ui.classroom.class_menu import offer_class
from hookviz.ui.explorer.atlas_menu import show_atlases
from hookviz.ui.explorer.compare_buttons import offer_pin, offer_silenced
from hookviz.ui.explorer.copy_as_code import code_menu, lens_code_menu
from hookviz.ui.explorer.grid_files import download_menu
from hookviz.ui.explorer.mounting import line_to, show_explorer, show_rows
from hookviz.ui.explorer.predictions import ClassWay, show_summary
from hookviz.ui.explorer.scene import ExplorerScene, subject_now, view_in_link
from hookviz.ui.explorer.share import share_menu
from hookviz.ui.languages import pick_language, speak_as_asked
from hookviz.ui.lenses import lens_choice
from hookviz.ui.lenses.leads import channel_questions, class_way
from hookviz.ui.lenses.lens_choice import pick_lens
from hookviz.ui.lenses.lens_run import show_lens
from hookviz.ui.lessons import choosing
from hookviz.ui.lessons.lesson_page import show_lesson, show_lessons
from hookviz.ui.lessons.live_part import SceneChoices
from hookviz.ui.link import settle_query
from hookviz.ui.live.frozen_frame import drop_held_scale, offer_way_back
from hookviz.ui.live.stream_view import is_live, leave, say_no_lens, say_rounding, show_stream
from hookviz.ui.menu import show_menus, show_more
from hookviz.ui.presenting.presenter import show_presenter
from hookviz.ui.serving import resources, upload_limits
from hookviz.ui.serving.go_route import open_short_link
from hookviz.ui.serving.login import let_in
from hookviz.ui.sidebar.image_choice import pick_image, say_stand_in
from hookviz.ui.sidebar.input_choice import pick_input
from hookviz.ui.sidebar.model_choice import pick_model
from hookviz.ui.sidebar.silent_channels import keep_silent
from hookviz.ui.sidebar.weights_download import may_load, wait_for_weights
from hookviz.ui.sidebar.weights_upload import shown_instead
from hookviz.ui.state import ModelChoice, Shown, plain
from hookviz.ui.theme import colours, head

_SIDEBAR = 300  # pixels


def show() -> None:
    """Draw the page once."""
    st.set_page_config("HookViz", _icon(), layout="wide", initial_sidebar_state=_SIDEBAR)
    settle_query()
    language = speak_as_asked()
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
        hand_over_address()


def _show(buttons: DeltaGenerator) -> None:
    """Draw all of the page, for those who may come in."""
    if not let_in():
        return
    open_short_link()
    show_presenter(link_of_taught)
    show_class()
    lesson = choosing.asked_lesson()
    if lesson is not None:
        choosing.begin(lesson)
    with buttons:
        choosing.offer_lessons()
        offer_class()
    with st.sidebar:
        shown = pick_image()
        refusal = upload_limits.refusal()
        if refusal:
            st.error(plain(refusal), icon=":material/upload_file:")
        if not is_live():
            leave()
        choice = pick_model()
    if choosing.is_list():
        show_lessons()
        return
    say_stand_in()
    spec, pretrained = choice.spec, choice.weights == "pretrained"
    if pretrained and spec.download_bytes and not spec.on_disk:
        wait_for_weights(spec)
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
        _show_model(shown, choice, lesson)


@cache
def _icon() -> str:
    """Return the page's icon, nine channels of a grid; a URL, since Streamlit encodes pictures."""
    values = np.arange(9, dtype=np.float32)[::-1].reshape(9, 1, 1)
    return data_url(make_grid(values, aspect=1, width=64).png())


def _show_model(shown: Shown, choice: ModelChoice, lesson: Lesson | None) -> None:
    """Load the model, and draw with it; it is in use until the page is drawn."""
    loading = partial(st.spinner, say("Loading {model}…", model=choice.spec.title))
    with st.sidebar:
        choice = keep_silent(choice, loading)
    with resources.use_model(choice, loading) as model:
        if lesson is not None:
            _show_lesson(lesson, shown, choice, model)
        else:
            _show_network(shown, choice, model)


def _show_lesson(lesson: Lesson, shown: Shown, choice: ModelChoice, model: Model) -> None:
    """Draw a lesson in place of the network."""
    with st.sidebar:
        size, whole = pick_input(model)
    model_input = _read(shown, model, size=size, whole=whole)
    scene = LessonScene(model, model_input, shown.image, resources.session_cache())
    show_lesson(lesson, scene, SceneChoices(shown, choice, size, whole))


def _show_network(shown: Shown, choice: ModelChoice, model: Model) -> None:
    """Draw everything below the choice of a model, in the order in which it is needed."""
    header = st.container(
        horizontal=True, vertical_alignment="center", key="hv-header", gap="small"
    )
    with st.sidebar:
        size, whole = pick_input(model)
        live = is_live()
        if live:
            say_no_lens()
        lens = None if live else pick_lens()
    model_input = _read(shown, model, size=size, whole=whole)
    shared = resources.sample_cache(choice)
    drop_held_scale()
    scene = ExplorerScene(shown, choice, model_input, size, whole, shared)
    if lens is not None:
        _show_through(lens, scene, model, header)
    elif live:
        _show_live(scene, model)
    elif lens_choice.is_list():
        _show_lenses(scene, model, header)
    else:
        _show_explorer(scene, model, header)


def _show_lenses(scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the page of all lenses, which ask for their small pictures one by one."""
    handed_over = scene.handed_over(model, is_compared=False)
    lens_choice.show_list(line_to(handed_over))
    subject = subject_now(handed_over, model)
    with header:
        capture = captured(subject, resolve(subject, view_in_link()))
        show_summary(
            scene.model_input, capture, model, scene.shown, _way(capture), instead=shown_instead()
        )
        show_menus(share_menu(scene.shown))


def _way(capture: Capture) -> ClassWay:
    """Return where a class's name leads to."""
    count = 0 if capture.logits is None else len(capture.logits)
    return class_way(capture.categories, count)


def _show_explorer(scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the explorer, which from then on asks for what it shows, and no run of the page."""
    show_atlases(model, scene.choice)
    handed_over = scene.handed_over(model)
    # first: it says itself what it waits for
    show_explorer(scene, handed_over, channel_questions())
    subject = subject_now(handed_over, model)
    with header:
        capture = captured(subject, resolve(subject, view_in_link()))
        show_summary(
            scene.model_input, capture, model, scene.shown, _way(capture), instead=shown_instead()
        )
        lens_choice.offer_list()
        choosing.offer_way_back()
        offer_way_back()
        show_more(
            share_menu(scene.shown),
            download_menu(scene),
            code_menu(scene, model),
            above=partial(offer_pin, scene),
        )


def _show_live(scene: ExplorerScene, model: Model) -> None:
    """Draw the stream in place of the channels of one image."""
    say_rounding(model)  # before the rows, whose tree is long
    handed_over = scene.handed_over(model, is_compared=False)
    looked = show_rows(handed_over, subject_now(handed_over, model), has_look=True)
    look = look_of(view_in_link(), colours(), looked.layer.output_shape[0])
    teaches = membership.taught() is not None
    show_stream(
        model, scene.choice, looked, look, size=scene.size, whole=scene.whole, teaches=teaches
    )


def _show_through(lens: Lens, scene: ExplorerScene, model: Model, header: DeltaGenerator) -> None:
    """Draw the lens in place of the channels."""
    shown, model_input = scene.shown, scene.model_input
    trace = input_trace(model, model_input)
    offered = (
        lens_choice.layers_for(lens, trace) or trace.layers
    )  # what needs a conv layer says so itself
    begins_at = lens_choice.begins_at(lens, trace)
    handed_over = scene.handed_over(model, is_compared=False, offered=offered, begins_at=begins_at)
    subject = subject_now(handed_over, model)
    around = st.container()
    with around:
        looked = show_rows(handed_over, subject)
        lens_choice.say_another(lens, trace, looked.layer.name)
    capture = captured(subject, looked)
    with header:
        show_summary(model_input, capture, model, shown, _way(capture), instead=shown_instead())
        lens_choice.offer_list()
        choosing.offer_way_back()
        offer_way_back()
        silenced = st.container(width="content")
        menus = st.container(horizontal=True, width="content")
    with around:
        result = show_lens(lens, model, model_input, shown, looked.layer)
    if result is not None:
        with silenced:
            offer_silenced(result, scene, model)
    with menus:
        code = [lens_code_menu(result, scene, model)] if result is not None else []
        show_more(share_menu(shown), *code)


def _read(shown: Shown, model: Model, *, size: int | None, whole: bool) -> ModelInput:
    """Return what the network is given, once its layers are traced."""
    key = (model.digest, shown.image.digest, size, whole)
    is_known = st.session_state.get("_read") == key  # a spinner starts a thread
    with nullcontext() if is_known else st.spinner(say("Reading the network…")):
        model_input = resources.prepare(model, shown.image, size=size, whole=whole)
        input_trace(model, model_input)
    st.session_state["_read"] = key
    return model_input

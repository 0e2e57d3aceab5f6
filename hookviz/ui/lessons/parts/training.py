"""Train the small network in steps that the page is drawn between, and show it step by step."""

from functools import partial

import streamlit as st
from streamlit.errors import StreamlitAPIException

from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.training import (
    AT,
    RATES,
    SEEDS,
    WRITTEN,
    first_frame,
    fixed_picture,
    training_of,
)
from hookviz.lessons.trainings import SharedTraining, computing, finished
from hookviz.ui.components.training import Watched, show_training
from hookviz.ui.lessons.picks import choose, pick, picked, remember_shown
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.theme import diverging


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choices, the button that trains, and the network as far as it was trained."""
    chosen = dict(options)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        if options["choose"] != "nothing":
            chosen |= {options["choose"]: _choose(options, key)}
    shared = training_of(chosen)
    running = f"_training {key}"
    if st.session_state.get(running) != (shared.rate, shared.seed) or shared.is_over:
        st.session_state.pop(running, None)
    is_running = running in st.session_state
    with row:
        _show_button(shared, running, is_running=is_running)
        place = st.container(width="stretch")
    if is_running:
        with place, computing() as mine:
            if mine:
                with turn(say("Training"), "training") as held:
                    shared.go_on(held.limit.within())
    with place:
        _show_progress(shared, is_running=is_running)
    frames = shared.frames or (first_frame(shared.seed),)
    at = min(max(picked(key, AT, len(frames) - 1), 0), len(frames) - 1)
    watched = Watched(
        name=f"{shared.rate} {shared.seed}",
        frames=frames[-1:] if is_running and not shared.is_over else frames,
        so_far=frames,
        at=at,
        kernel=picked(key, "kernel", 0),
        others=tuple(each for each in finished() if each is not shared),
        is_over=shared.is_over,
    )
    show_training(
        watched,
        fixed_picture(scene),
        diverging(),
        on_at=partial(pick, key, AT),
        on_kernel=partial(pick, key, "kernel"),
        key=f"training-{key}",
    )
    if is_running and not shared.is_over:
        _again()
    # The text tells of what there is when it does not train.
    started = {"rate": options["rate"], "seed": options["seed"], AT: ""}
    shown = {name: chosen[name] for name in ("rate", "seed")}
    remember_shown(key, {**shown, AT: str(at) if shared.frames else ""}, started)


def _choose(options: Options, key: str) -> str:
    """Show the choice of the rate or of the seed, and return what is chosen."""
    forget = partial(pick, key, AT, "")
    if options["choose"] == "rate":
        return choose(
            st.segmented_control,
            say("Learning rate"),
            tuple(RATES),
            key,
            "rate",
            first=options["rate"],
            then=forget,
            format_func=WRITTEN.__getitem__,
            required=True,
            width="content",
        )
    return choose(
        st.segmented_control,
        say("Random numbers to begin with"),
        tuple(map(str, SEEDS)),
        key,
        "seed",
        first=options["seed"],
        then=forget,
        required=True,
        width="content",
    )


def _show_button(shared: SharedTraining, running: str, *, is_running: bool) -> None:
    """Show the button that begins, stops or goes on with a training; none where it is over."""

    def begin() -> None:
        st.session_state[running] = (shared.rate, shared.seed)

    if is_running:
        st.button(
            say("Stop"),
            icon=":material/stop:",
            key=f"{running} button",
            on_click=st.session_state.pop,
            args=(running, None),
        )
    else:
        word = say("Go on") if shared.frames else say("Train")
        st.button(
            say("Trained already") if shared.is_over else word,
            icon=":material/check:" if shared.is_over else ":material/play_arrow:",
            key=f"{running} button",
            type="primary",
            disabled=shared.is_over,
            on_click=begin,
        )


def _show_progress(shared: SharedTraining, *, is_running: bool) -> None:
    """Show how far a training is that runs or was stopped."""
    if shared.is_over or not (is_running or shared.frames):
        return
    words = say("It trains…") if shared.frames else say("The drawings are being made…")
    st.progress(shared.share, words if is_running else say("Stopped."))


def _again() -> None:
    """Draw the part anew, and with it compute on; the rest of the page stands where it can."""
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:  # this run is one of the whole page
        st.rerun()

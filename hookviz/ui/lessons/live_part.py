"""Draw a live part by itself, with the button to what it shows in the explorer."""

from collections.abc import Mapping
from functools import partial
from importlib import import_module

import streamlit as st

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lessons.lesson import Live
from hookviz.lessons.part import Options, module_of, parts
from hookviz.ui.lessons.choosing import open_in_explorer
from hookviz.ui.lessons.lesson_scene import SceneChoices
from hookviz.ui.lessons.picks import remembered_link, remembered_shown
from hookviz.ui.state import plain


def show_live(choices: SceneChoices, live: Live, key: str, told: Options) -> None:
    """Draw a live part; where it can't show this model or image, say so, and the lesson goes on.

    Whatever is done in it, the rest of the page stands as it is, unless the step's text tells of
    what was changed: `told` are the changed options that it was written with.
    """
    with st.container(key=f"hv-live-{key}"):
        _alone(choices, live, key, told)
        try:
            with choices.scene() as scene:
                link = parts()[live.part].link(scene, live.options)
        except HookVizError:
            return  # the part has said it
        if link:
            st.button(
                say("Open in the explorer"),
                icon=":material/open_in_new:",
                key=f"open {key}",
                type="tertiary",
                on_click=partial(_open, link, key),
            )


def _open(link: Mapping[str, str], key: str) -> None:
    """Open the explorer at the link of the lesson's part, with what was picked in it since."""
    open_in_explorer({**link, **remembered_link(key)})


@st.fragment
def _alone(choices: SceneChoices, live: Live, key: str, told: Options) -> None:
    module = import_module(f"hookviz.ui.lessons.parts.{module_of(live.part)}")
    try:
        with choices.scene() as scene:
            module.show(scene, live.options, key)
    except HookVizError as error:
        st.warning(plain(str(error)), icon=":material/info:")
    if remembered_shown(key) != told:
        st.rerun()

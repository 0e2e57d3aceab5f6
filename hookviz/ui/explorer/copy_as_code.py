"""Offer what is on the screen as a script to copy."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import streamlit as st

from hookviz.codegen.facts import lens_facts_of, picture_facts_of
from hookviz.codegen.lens_script import lens_script
from hookviz.codegen.picture_script import picture_script
from hookviz.errors import HookVizError
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LensResult
from hookviz.lenses.contract.running import find_lens
from hookviz.models.bundled import BUNDLED
from hookviz.types import Model
from hookviz.ui.explorer.pinned_view import PIN
from hookviz.ui.explorer.scene import ExplorerScene, drawn_now, view_in_link
from hookviz.ui.menu import Menu
from hookviz.ui.serving import resources
from hookviz.ui.state import Shown, plain

_WHERE = mark("run it in a folder that has the image, and the weights if they are no download.")


def code_menu(scene: ExplorerScene, model: Model) -> Menu:
    """Return a menu with the picture as a script to copy, and the files of ours that it reads."""
    if scene.choice.mask is not None:
        return _no_script()
    return _menu(_says, partial(_write, scene), "hookviz_picture.py", scene.shown, model)


def _no_script() -> Menu:
    """Return the menu where channels are silent, of which a script would know nothing."""
    return Menu(say("Copy as code"), "code", "code", _show_no_script)


def _show_no_script() -> None:
    st.caption(say("There is no script for a network with silent channels: bring them back first."))


def _says() -> str:
    what = (
        say("B by itself, on a scale of its own,")
        if st.query_params.get(PIN)
        else say("the same picture")
    )
    return say(
        "This draws {picture} without HookViz, pixel for pixel: {how}",
        picture=what,
        how=say(_WHERE),
    )


def _write(scene: ExplorerScene) -> str:
    drawn, view = drawn_now(scene), view_in_link()
    # of A, where it alone is shown, none is picked
    channel = view.channel if view.channel in drawn.grid.order and not drawn.is_of_a else None
    with resources.use_model(scene.choice) as model:
        return picture_script(
            picture_facts_of(
                model,
                _file_name(scene.shown),
                drawn.own,
                size=scene.size,
                whole=scene.whole,
                channel=channel,
            )
        )


def lens_code_menu(result: LensResult, scene: ExplorerScene, model: Model) -> Menu:
    """Return a menu with what a lens shows as a script, and the files of ours that it reads."""
    if scene.choice.mask is not None:
        return _no_script()
    facts = lens_facts_of(
        model,
        _file_name(scene.shown),
        result,
        shape=tuple(scene.model_input.tensor.shape[1:]),
        size=scene.size,
        whole=scene.whole,
    )
    says = say(
        "This computes the same numbers without HookViz, and writes them as NPZ: {how}",
        how=say(_WHERE),
    )
    write = partial(lens_script, facts, find_lens(result.lens).script)
    return _menu(lambda: says, write, f"hookviz_{result.lens}.py", scene.shown, model)


def _file_name(shown: Shown) -> str:
    return shown.file.name if shown.file else shown.image.name


def _menu(
    says: Callable[[], str], write: Callable[[], str], name: str, shown: Shown, model: Model
) -> Menu:
    shipped = BUNDLED.get(model.name) if model.weights == "pretrained" else None
    weights = shipped.weights_file if shipped else None
    fill = partial(_show_script, says, write, name, shown.file, weights)
    return Menu(say("Copy as code"), "code", "code", fill)


def _show_script(
    says: Callable[[], str],
    write: Callable[[], str],
    name: str,
    image_file: Path | None,
    weights_file: Path | None,
) -> None:
    try:
        code = write()
    except HookVizError as error:
        st.caption(plain(str(error)))
        return
    st.caption(says())
    st.code(code, "python", height=420)
    with st.container(horizontal=True):
        st.download_button(say("The script"), code, name, "text/x-python", on_click="ignore")
        for label, file, mime in (
            (say("The image"), image_file, "image/jpeg"),
            (say("The weights"), weights_file, "application/octet-stream"),
        ):
            if file is not None:
                st.download_button(label, file.read_bytes, file.name, mime, on_click="ignore")

"""Mount the explorer's client on the page, as a whole or its rows, and handle its requests."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import streamlit as st

from hookviz.atlas.atlas import Atlas
from hookviz.errors import HookVizError
from hookviz.explorer.answering import answer
from hookviz.explorer.client_files import client_fields
from hookviz.explorer.layers import ResolvedView, resolve
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.language.saying import mark, say
from hookviz.machine.memory import MEGABYTE
from hookviz.settings import ASSETS, settings
from hookviz.ui.components.files import mount
from hookviz.ui.explorer.atlases import open_atlases, own_file
from hookviz.ui.explorer.pinned_view import unpin
from hookviz.ui.explorer.scene import ExplorerScene, step_now, view_in_link
from hookviz.ui.link import address, browser_says, update_link
from hookviz.ui.recent_images import queue_for_next_run
from hookviz.ui.serving import explorer_route
from hookviz.ui.serving.explorer_sessions import Scene, explorer_sessions
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import open_sample, plain, warn
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME

_VISITED = "_layers"  # layers in this session; no widget has the key, so no link can set it
_PARTS = {
    "eyes": mark("eyes"),
    "cup": mark("the cup"),
    "face": mark("the face"),
    "rocket": mark("the rocket"),
    "head": mark("the head"),
}
"""Parts of the samples to which the openings' channels respond."""


def show_explorer(
    scene: ExplorerScene, answer_scene: Scene, questions: Sequence[Mapping[str, Any]]
) -> None:
    """Show the explorer and, in the sidebar, its tree of layers.

    The client writes its view into the address by itself.

    Args:
        scene: the image and the network.
        answer_scene: the same, for the threads that answer the client's requests.
        questions: each leads from the picked channel to a lens: ``says``, ``hint``,
            ``needsWeights`` and ``link``.
    """

    def handle(request: Any) -> None:
        """Handle a request to the page itself, from a browser and so of any form."""
        match request:
            case {"unpin": True}:
                unpin()
            case {"atlas": True}:
                open_atlases()
            case {"leads": {"sample": str(name), "cell": str(cell), "channel": int(channel)}}:
                open_sample(name)
                update_link(cell=cell, channel=str(channel))
            case {"leads": {"image": int(rank), "cell": str(cell), "channel": int(channel)}}:
                if _open_patch_image(answer_scene.atlas, scene, channel, rank):
                    update_link(cell=cell, channel=str(channel))

    begins = None if answer_scene.pinned else opening(scene)
    facts = {"fields": client_fields(), "questions": questions, "opening": begins}
    mount("explorer", "explorer", route_to(answer_scene) | facts, opened=handle)
    with st.sidebar:
        mount("explorer_tree", "explorer-tree", {})


def show_rows(answer_scene: Scene, subject: Subject, *, has_look: bool = False) -> ResolvedView:
    """Show the explorer's rows and its tree over a lens or a stream; return the resolved view.

    A click there runs the page (``address.js``). A layer that does not run is removed from the
    link.

    Args:
        answer_scene: the scene, for the threads that answer the client's requests.
        subject: the same scene, for this run.
        has_look: whether the rows offer scale and colours.

    Raises:
        HookVizError: the network has no layer to show.
    """
    known = address()
    known.drawn = known.view  # before it is read: another thread may bring a newer one
    view = view_in_link()
    resolved = resolve(subject, view)
    visited: set[str] = st.session_state.setdefault(_VISITED, set())
    if view.layer not in visited:  # else another model was chosen on this page
        warn(resolved.warning)
    if view.layer is not None and view.layer not in subject.trace.recordable:
        update_link(layer=None)
    visited.add(resolved.layer.name)
    layers = answer(subject, view, Question("layers")).facts
    facts = {"fields": client_fields(), "questions": (), "opening": None}
    rows = {"layers": {**layers, "patches": None}, "hasLook": has_look}
    with st.container(key="hv-layer"):
        mount(
            "explorer_rows",
            "explorer_rows",
            route_to(answer_scene) | facts | rows,
            opened=lambda _: None,  # the page runs again, and that is all
        )
    with st.sidebar:
        mount("explorer_tree", "explorer-tree", {})
    return resolved


def route_to(answer_scene: Scene) -> dict[str, str]:
    """Return the path, the session's token and the scene's key for the client's requests."""
    cookie = st.context.cookies.get(XSRF_COOKIE_NAME, "")  # the client's requests have it too
    token, key = explorer_sessions().offer(session(), cookie, answer_scene, browser_says())
    return {"path": explorer_route.PATH, "token": token, "subject": key}


@cache
def _openings() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return the layer, channel and part that `scripts.openings` chose, by network and sample."""
    chosen: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
        (ASSETS / "openings.json").read_text("utf-8")
    )
    return chosen


def opening(scene: ExplorerScene) -> Mapping[str, str] | None:
    """Return the layer and channel of a new view, and the part of the image that excites it.

    Returns:
        None for an image or weights of the session's own, and for another input size or crop than
        the network was trained with.
    """
    choice, file = scene.choice, scene.image_choice.file
    is_other = scene.size is not None or scene.whole or choice.mask is not None
    if is_other or choice.weights != "pretrained" or file is None:
        return None
    words = _openings().get(choice.spec.name, {}).get(file.stem)
    if words is None:
        return None
    return {
        "layer": words["layer"],
        "channel": str(words["channel"]),
        "part": say(_PARTS[words["part"]]),
    }


def _open_patch_image(atlas: Atlas | None, scene: ExplorerScene, channel: int, rank: int) -> bool:
    """Open the image of a channel's patch, in a callback; return whether the image is here.

    Args:
        atlas: the patch's; None if it was dropped.
        scene: of the channel.
        channel: the channel's number.
        rank: of the patch, 0 for the strongest.
    """
    try:
        top = atlas.top_activations(str(step_now(scene)), channel) if atlas is not None else ()
    except HookVizError as error:
        st.toast(plain(str(error)), duration="long")
        return False
    if atlas is None or not 0 <= rank < len(top):
        return False
    image = top[rank].image
    path, own = atlas.picture(image), own_file(atlas.digest, image)
    if path is None and own is not None:
        queue_for_next_run(image.name, own, image.digest)
    elif path is None or path.stat().st_size > settings().upload_mb * MEGABYTE:
        st.toast(
            plain(
                say("{image} is not here any more; its patch is all there is.", image=image.name)
            ),
            duration="long",
        )
        return False
    else:
        queue_for_next_run(image.name, path.read_bytes(), image.digest)
    return True

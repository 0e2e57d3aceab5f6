"""Mount the explorer's client on the page, as a whole or its rows, and do what it asks of it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from hookviz.explorer.answering import answer
from hookviz.explorer.client_files import client_fields
from hookviz.explorer.layers import ResolvedView, resolve
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.ui.components.files import mount
from hookviz.ui.explorer.atlas_menu import open_atlases
from hookviz.ui.explorer.image_of_patch import look_at
from hookviz.ui.explorer.opening import opening
from hookviz.ui.explorer.pinned_view import unpin
from hookviz.ui.explorer.scene import ExplorerScene, step_now, view_in_link
from hookviz.ui.link import address, browser_says, update_link
from hookviz.ui.serving import explorer_route
from hookviz.ui.serving.explorer_sessions import Scene, explorer_sessions
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import choose, choose_sample, warn
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME

_SEEN = "_layers"  # those that were looked at; a key that no widget has can't be set from outside


def _explorer(
    line: Mapping[str, str],
    on_opened: Callable[[Any], None],
    *,
    questions: Sequence[Mapping[str, Any]] = (),
    begins: Mapping[str, str] | None = None,
    rows: Mapping[str, Any] | None = None,
) -> None:
    """Show the explorer of what a page run hands over, or its rows alone, over something else.

    What a person chooses in it goes into the address by itself; over a lens or a stream the page
    runs then (``address.js``).

    Args:
        line: the ``path`` that answers, the ``token`` by which this session asks, and the key of
            the ``subject`` that is asked about: another one has the client ask anew.
        on_opened: gets what only the page can do, as facts that come from a browser and can be
            anything: ``{"unpin": true}``, ``{"atlas": true}``, ``{"leads": …}`` to a patch's image,
            and ``{"anew": true}`` for a run of the page alone.
        questions: what can be asked about a channel: ``says``, ``hint``, ``needsWeights`` and the
            ``link`` that leads there.
        begins: where a view begins of which the link says nothing: ``layer``, ``channel`` and the
            ``part`` of the image that it answers to.
        rows: of the rows alone: what is answered about the ``layers``, and whether it can be chosen
            how channels are drawn (``hasLook``).
    """
    name = "explorer" if rows is None else "explorer_rows"
    facts = {**line, "fields": client_fields(), "questions": questions, "opening": begins}
    facts |= rows or {}
    mount(name, name, facts, opened=on_opened)


def _explorer_tree() -> None:
    """Make the place where the explorer puts its tree of layers."""
    mount("explorer_tree", "explorer-tree", {})


def show_explorer(
    scene: ExplorerScene, handed_over: Scene, questions: Sequence[Mapping[str, Any]]
) -> None:
    """Show the explorer, and the tree of layers at the side; both ask for what they show.

    `questions` lead from a channel that is picked up to a lens.
    """

    def opened(asked: Any) -> None:
        """Do what the page alone can do; `asked` comes from a browser and may be anything."""
        match asked:
            case {"unpin": True}:
                unpin()
            case {"atlas": True}:
                open_atlases()
            case {"leads": {"sample": str(name), "cell": str(cell), "channel": int(channel)}}:
                choose(image="Samples")
                choose_sample(name)
                update_link(cell=cell, channel=str(channel))
            case {"leads": {"image": int(rank), "cell": str(cell), "channel": int(channel)}}:
                link = {"cell": cell, "channel": str(channel)}
                look_at(handed_over.atlas, partial(step_now, scene), channel, rank, link)

    begins = None if handed_over.pinned else opening(scene)
    _explorer(line_to(handed_over), opened, questions=questions, begins=begins)
    with st.sidebar:
        _explorer_tree()


def show_rows(handed_over: Scene, subject: Subject, *, has_look: bool = False) -> ResolvedView:
    """Show the explorer's rows and its tree over a lens or a stream, and return what is looked at.

    A link to a layer that does not run is mended, and `has_look` shows how channels are drawn.

    Raises:
        HookVizError: there is no layer to look at.
    """
    known = address()
    known.drawn = known.view  # before it is read: another thread may bring a newer one
    view = view_in_link()
    looked = resolve(subject, view)
    seen: set[str] = st.session_state.setdefault(_SEEN, set())
    if view.layer not in seen:  # and not where another model was chosen here
        warn(looked.warning)
    if view.layer is not None and view.layer not in subject.trace.recordable:
        update_link(layer=None)
    seen.add(looked.layer.name)
    layers = answer(subject, view, Question("layers")).facts
    with st.container(key="hv-layer"):
        _explorer(
            line_to(handed_over),
            lambda _: None,  # a run of the page is all that they ask for
            # which channels an image excites is nothing that is seen here
            rows={"layers": {**layers, "patches": None}, "hasLook": has_look},
        )
    with st.sidebar:
        _explorer_tree()
    return looked


def line_to(handed_over: Scene) -> dict[str, str]:
    """Return where this session asks about a scene, by which token, and the scene's key."""
    cookie = st.context.cookies.get(XSRF_COOKIE_NAME, "")  # the client's questions have it too
    token, key = explorer_sessions().offer(session(), cookie, handed_over, browser_says())
    return {"path": explorer_route.PATH, "token": token, "subject": key}

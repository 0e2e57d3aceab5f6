"""Mount the explorer's client on the page, and do what it asks of the page."""

from functools import partial
from typing import Any

import streamlit as st

from hookviz.ui.components.explorer import explorer, explorer_tree
from hookviz.ui.explorer.atlas_menu import open_atlases
from hookviz.ui.explorer.image_of_patch import look_at
from hookviz.ui.explorer.pinned_view import unpin
from hookviz.ui.explorer.scene import ExplorerScene, step_now
from hookviz.ui.link import link_watch, update_link
from hookviz.ui.serving import explorer_route
from hookviz.ui.serving.explorer_sessions import Scene, explorer_sessions
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import choose, choose_sample
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME


def show_explorer(scene: ExplorerScene, handed_over: Scene) -> None:
    """Show the explorer, and the tree of layers at the side; both ask for what they show."""
    cookie = st.context.cookies.get(XSRF_COOKIE_NAME, "")  # the client's questions have it too
    token, key = explorer_sessions().offer(session(), cookie, handed_over, link_watch())

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

    explorer(explorer_route.PATH, token, key, opened)
    with st.sidebar:
        explorer_tree()

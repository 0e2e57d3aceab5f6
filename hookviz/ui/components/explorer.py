"""Show the explorer: a client in the browser that asks a route of the server."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from hookviz.explorer.view import choices
from hookviz.ui.components.files import component, packed


def explorer(path: str, token: str, subject: str, on_opened: Callable[[Any], None]) -> None:
    """Show the explorer of what a page run hands over.

    What a person chooses in it goes into the address by itself, without a run of the page.

    Args:
        path: the route that answers.
        token: by which this session asks.
        subject: key of what is asked about; another one has the client ask anew.
        on_opened: gets what only the page can do, as facts that come from a browser and can be
            anything: ``{"unpin": true}``, ``{"atlas": true}``, ``{"leads": …}`` to a patch's image,
            or ``{"anew": true}`` for a run of the page alone.
    """
    facts = {"path": path, "token": token, "subject": subject, "fields": declared_fields()}
    component("explorer")(
        key="explorer",
        data=packed(facts),
        on_opened_change=lambda: on_opened(st.session_state["explorer"].get("opened")),
    )


def explorer_tree() -> None:
    """Make the place where the explorer puts its tree of layers."""
    component("explorer_tree")(key="explorer-tree", data=packed({}))


def declared_fields() -> list[dict[str, Any]]:
    """Return what can be chosen, as the client reads it: words, defaults and values of a link."""
    return [
        {
            "word": choice.word,
            "default": choice.default,
            "values": choice.values and list(choice.values),
            "isPage": choice.is_page,
        }
        for choice in choices().values()
    ]

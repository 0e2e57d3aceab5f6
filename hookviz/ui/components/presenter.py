"""Show the presenter's buttons, slide list and link for the class."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from hookviz.ui.components.files import component, packed

_KEY = "presenter"


def presenter(
    words: Mapping[str, Any],
    version: int,
    answer: Mapping[str, Any] | None,
    on_asked: Callable[[str, str], None],
    on_brought: Callable[[str, str], None],
) -> None:
    """Show the buttons, the slide list and the link for the class.

    Args:
        words: what is written on them, by what it is for.
        version: of the files of slides that are exported.
        answer: to what was asked last, with its ``number``: a link, slides, or a ``fault``.
        on_asked: gets a link's query string and a number, to make a link for the class of it.
        on_brought: gets the text of a file and a number, where slides are imported.
    """

    def handle(name: str, part: str, act: Callable[[str, str], None]) -> None:
        sent = st.session_state[_KEY].get(name)
        if isinstance(sent, Mapping) and {part, "number"} <= set(sent):
            act(str(sent[part]), str(sent["number"])[:80])

    component("presenter")(
        key=_KEY,
        data=packed({"words": dict(words), "version": version, "answer": answer}),
        on_asked_change=lambda: handle("asked", "query", on_asked),
        on_brought_change=lambda: handle("brought", "text", on_brought),
    )

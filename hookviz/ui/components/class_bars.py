"""Show the bars of a class: what its teacher sees of it, and what who follows does."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from hookviz.ui.components.files import component, packed


def _sent(key: str, name: str) -> str:
    """Return what a bar has sent, which may be gone from the page by the time that it comes."""
    return str(st.session_state.get(key, {}).get(name))


def follower_bar(facts: Mapping[str, Any], on_over: Callable[[str], None]) -> None:
    """Show the bar of who follows a class.

    Args:
        facts: where it is (``path``, ``code``, ``token``), what of the link is nobody else's
            (``ofOne``), and the words.
        on_over: gets why this page follows no more: ``left``, ``ended``, ``elsewhere``,
            ``unknown``; anybody can send anything.
    """

    def over() -> None:
        on_over(_sent("hv-follower", "over"))

    component("follower", js="class_follower.js", css="class_bar.css")(
        key="hv-follower", data=packed(facts), on_over_change=over
    )


def teacher_bar(
    facts: Mapping[str, Any], on_over: Callable[[str], None], on_taken: Callable[[str], None]
) -> None:
    """Show the bar of who teaches: the shared link, how many follow, what they answer.

    Args:
        facts: where it is (``path``, ``code``, ``token``, which is empty where the session does
            not know it), ``shown``, the ``language`` of numbers, and the words.
        on_over: as of `follower_bar`.
        on_taken: gets the token that the browser has kept.
    """

    def over() -> None:
        on_over(_sent("hv-teacher", "over"))

    def taken() -> None:
        on_taken(_sent("hv-teacher", "taken"))

    component("teacher", js="class_teacher.js", css="class_bar.css")(
        key="hv-teacher", data=packed(facts), on_over_change=over, on_taken_change=taken
    )

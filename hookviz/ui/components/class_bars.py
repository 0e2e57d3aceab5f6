"""The bars of a class: what its teacher sees of it, and what who follows does."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import streamlit as st

from hookviz.ui.components.files import packed, script, source


@cache
def _follower() -> Any:
    return st.components.v2.component(
        "hookviz_follower",
        css=source("class_bar.css"),
        js=script("class_follower.js"),
    )


@cache
def _teacher() -> Any:
    return st.components.v2.component(
        "hookviz_teacher",
        css=source("class_bar.css"),
        js=script("class_teacher.js"),
    )


def _said(key: str, name: str) -> str:
    """What a bar has sent, which may be gone from the page by the time that it comes."""
    return str(st.session_state.get(key, {}).get(name))


def follower_bar(facts: Mapping[str, Any], on_over: Callable[[str], None]) -> None:
    """Follow a class, and say so.

    Args:
        facts: where it is (``path``, ``code``, ``token``), what of the link is nobody else's
            (``ofOne``), and the words.
        on_over: gets why this page follows no more: ``left``, ``ended``, ``elsewhere``,
            ``unknown``; anybody can send anything.
    """

    def over() -> None:
        on_over(_said("hv-follower", "over"))

    _follower()(key="hv-follower", data=packed(facts), on_over_change=over)


def teacher_bar(
    facts: Mapping[str, Any], on_over: Callable[[str], None], on_taken: Callable[[str], None]
) -> None:
    """Share the link with a class, and count who follows and what they answer.

    Args:
        facts: where it is (``path``, ``code``, ``token``, which is empty where the session does
            not know it), ``shown``, the ``language`` of numbers, and the words.
        on_over: as of `follower_bar`.
        on_taken: gets the token that the browser has kept.
    """

    def over() -> None:
        on_over(_said("hv-teacher", "over"))

    def taken() -> None:
        on_taken(_said("hv-teacher", "taken"))

    _teacher()(key="hv-teacher", data=packed(facts), on_over_change=over, on_taken_change=taken)

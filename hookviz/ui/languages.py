"""Choose the language of the page: by the link, by the switch, else by the browser."""

from collections.abc import Sequence

import streamlit as st
from starlette.requests import HTTPConnection

from hookviz.language import catalogs
from hookviz.language.catalogs import ENGLISH, languages
from hookviz.language.speaking import ask_where_silent, speak
from hookviz.ui import streamlit_internals
from hookviz.ui.link import update_link

PARAMETER = "lang"
"""Link parameter: the language."""
_KEY = "_language"  # of the session


def in_link(language: str) -> str:
    """Write a language as in a link: ``"zh-CN"``."""
    return language.replace("_", "-")


def nearest(wanted: str, known: Sequence[str]) -> str | None:
    """Return the known language, or its variant, for readers of `wanted`; None without one.

    >>> nearest("zh-Hans-SG", ("en", "zh_CN")), nearest("de", ("en", "zh_CN"))
    ('zh_CN', None)
    """
    folded = wanted.replace("_", "-").casefold()
    by_name = {language.replace("_", "-").casefold(): language for language in known}
    if folded in by_name:
        return by_name[folded]
    base = folded.partition("-")[0]
    return next((each for name, each in by_name.items() if name.partition("-")[0] == base), None)


def language_of(request: HTTPConnection) -> str:
    """Return the language of a request beside the page: of its link, or of its browser."""
    browsers = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0]
    wanted = request.query_params.get(PARAMETER) or browsers.strip()
    return nearest(wanted, languages()) or ENGLISH


def speak_page_language() -> str:
    """Speak the page's language from here on, remember it, and return it."""
    wanted = st.query_params.get(PARAMETER) or st.context.locale or ""
    language = nearest(wanted, languages()) or ENGLISH
    st.session_state[_KEY] = language
    speak(language)
    return language


def pick_language() -> None:
    """Show the choice of a language, if there is more than one."""
    known = languages()
    if len(known) < 2:
        return
    spoken = st.session_state.get(_KEY, ENGLISH)
    chosen = st.selectbox(
        "Language · 语言",
        known,
        known.index(spoken),
        format_func=_label,
        key=f"language {spoken}",
        label_visibility="collapsed",
        width=120,
    )
    if chosen != spoken:
        update_link(**{PARAMETER: in_link(chosen)})
        st.rerun()


def _label(language: str) -> str:
    """Return a language's own name after an invisible space.

    At the start of a Chinese word Streamlit would search for an emoji, whose pattern takes a tenth
    of a second of the first page.
    """
    return f" {catalogs.own_name(language)}"


def _of_session() -> str | None:
    """Return the language of this thread's session, for a fragment's run."""
    if streamlit_internals.session_id() is None:
        return None
    spoken: str | None = st.session_state.get(_KEY)
    return spoken


ask_where_silent(_of_session)

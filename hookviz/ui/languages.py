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
"""What the link calls it."""
_KEY = "_language"  # of the session


def in_link(language: str) -> str:
    """Return how a link writes a language: ``"zh-CN"``."""
    return language.replace("_", "-")


def nearest(asked: str, known: Sequence[str]) -> str | None:
    """Return the one of the `known` languages for whoever reads `asked`; None without one.

    Whoever reads another kind of it would rather have this one than another language.

    >>> nearest("zh-Hans-SG", ("en", "zh_CN")), nearest("de", ("en", "zh_CN"))
    ('zh_CN', None)
    """
    folded = asked.replace("_", "-").casefold()
    alike = {language.replace("_", "-").casefold(): language for language in known}
    if folded in alike:
        return alike[folded]
    base = folded.partition("-")[0]
    return next((each for name, each in alike.items() if name.partition("-")[0] == base), None)


def language_of(request: HTTPConnection) -> str:
    """Return the language of a request beside the page: by its link, else by its browser."""
    browsers = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0]
    asked = request.query_params.get(PARAMETER) or browsers.strip()
    return nearest(asked, languages()) or ENGLISH


def speak_as_asked() -> str:
    """Speak the language of the page from here on, remember it, and return it."""
    known = languages()
    asked = st.query_params.get(PARAMETER) or st.context.locale or ""
    language = nearest(asked, known) or ENGLISH
    st.session_state[_KEY] = language
    speak(language)
    return language


def pick_language() -> None:
    """Show the switch, where there is more than one language."""
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
    """Return a language's own name behind a space, which nobody sees.

    Streamlit would look for an emoji at the beginning of a Chinese word, and put together the
    pattern of all of them for it: a tenth of a second of the first page.
    """
    return f" {catalogs.own_name(language)}"


def _of_session() -> str | None:
    """Return the language of the session whose run this thread carries out, alone in a fragment."""
    if streamlit_internals.session_id() is None:
        return None
    spoken: str | None = st.session_state.get(_KEY)
    return spoken


ask_where_silent(_of_session)

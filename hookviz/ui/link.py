"""Write what no widget binds into the link, and hold it until the browser has it.

A click comes with the link as the browser has it. Of two clicks close together the second may have
set out before the change that the first one made was there, and Streamlit takes the newest link for
the true one: without what is held here, the first choice would be lost.

One case is left: where Streamlit puts a click together with the browser's Back, it does not say
that there was a Back (`script_requests.py` calls it an accepted limitation), and what Back changed
of these names is put back.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl

import streamlit as st

from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.ui import streamlit_internals

HELD = frozenset(each.name for each in PARAMETERS if each.is_held)
"""Names that no widget binds on any page: what is bound is the browser's to change."""

_LONGEST = 20_000  # letters of a link that are read
_WRITTEN = "_written"  # a key of session_state that no widget has can't be set from outside
_ON_ITS_WAY = 1.0  # seconds that a question may have been on its way when the link was written
_LATEST = 30.0  # seconds after a change in which a click may still come with the link before


@dataclass(slots=True)
class _Written:
    """Value of a link parameter as it was written last, None for left out, and earlier ones.

    Attributes:
        value: what was written last.
        before: what it stood at earlier, and when that ended by `time.monotonic`.
    """

    value: str | None
    before: dict[str | None, float] = field(default_factory=dict)


def update_link(**changes: str | None) -> None:
    """Change the link; None leaves a name out.

    However many messages that takes, it is one step of the browser's history (`history.js`). What a
    widget of the page writes by ``bind="query-params"`` is not for this: Streamlit lets nobody else
    do it. Nothing is written by the callback of a widget whose value came with a step of the
    browser's history: a run before has taken it off the page, so that it only looks changed.
    """
    if streamlit_internals.is_callback_at_history_step():
        return
    if not streamlit_internals.is_from_history():
        restore_reverted()
    before = {name: st.query_params.get(name) for name in HELD & changes.keys()}
    written, now = _written(), time.monotonic()
    for name, was in before.items():
        one = written.setdefault(name, _Written(was))
        one.before[was] = now
        one.value = changes[name]
        one.before.pop(one.value, None)
    _write(changes)  # last: a click that ends the run here undoes nothing of it


def restore_reverted() -> None:
    """Put back what a click has undone that was on its way when it was written.

    To be called before the link is read, once a run. The browser's Back comes with an earlier link
    too, and there it is meant.
    """
    written = _written()
    if streamlit_internals.is_from_history():
        written.clear()
        return
    oldest = time.monotonic() - _LATEST
    undone = {}
    for name, one in written.items():
        for value, ended in list(one.before.items()):  # which `link_watch` changes meanwhile
            if ended <= oldest:
                one.before.pop(value, None)
        if st.query_params.get(name) in one.before:
            undone[name] = one.value
    _write(undone)


def link_watch() -> Callable[[str], None]:
    """Return what tells this session, from any thread, of the link that its explorer shows.

    That is the browser's own and newer than what was written here, so nothing of it is put back.
    """
    written = _written()

    def seen(query: str) -> None:
        link = dict(parse_qsl(query.removeprefix("?")[:_LONGEST]))
        asked_since = time.monotonic() - _ON_ITS_WAY
        for name, one in list(written.items()):
            value = link.get(name)
            if one.before.get(value, asked_since) < asked_since:
                one.before.pop(value, None)

    return seen


def _written() -> dict[str, _Written]:
    written: dict[str, _Written] = st.session_state.setdefault(_WRITTEN, {})
    return written


def _write(changes: Mapping[str, str | None]) -> None:
    for name in [name for name, value in changes.items() if value is None]:
        st.query_params.pop(name, None)
    said = {name: value for name, value in changes.items() if value is not None}
    if said:
        st.query_params.update(said)

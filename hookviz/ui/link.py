"""Read and write the page's link: Streamlit's query, and the fragment with the explorer's view.

What stands in the fragment (`view_words`) costs no run of the page, and Streamlit tells its server
nothing of it. The browser does, by ``address.js``: with each question of the explorer, and for the
pages that draw by the view also where the two differ. Old links have the view in the query; it is
taken from there once.

A click comes with the query as the browser has it. Of two clicks close together the second may have
set out before the browser had what the first one wrote, and Streamlit takes the newest query for
the true one. So a query that says what stood before the newest write gets that write again, unless
it came by the browser's Back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qsl

import streamlit as st

from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.explorer.view import choices
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.running import list_lenses
from hookviz.ui import streamlit_internals

_LONGEST = 20_000  # letters of a fragment that are read
_ADDRESS = "_address"  # a key of session_state that no widget has can't be set from outside


@cache
def view_words() -> frozenset[str]:
    """Return the words that stand in the fragment: whatever the explorer's client chooses."""
    of_view = {choice.word for choice in choices().values() if not choice.is_page}
    return frozenset({"mirror", *of_view, *named_channels()})


@cache
def named_channels() -> tuple[str, ...]:
    """Return the words that name channels in a lens, in place of the one that is picked up."""
    return tuple(
        f"{lens.slug}-{parameter.name}"
        for lens in list_lenses()
        for parameter in lens.parameters
        if isinstance(parameter, kinds.Channels)
    )


@cache
def _held() -> frozenset[str]:
    """Return the words of the query that no widget binds: what is bound is Streamlit's to write."""
    return frozenset(each.name for each in PARAMETERS if each.is_held) - view_words()


@dataclass(slots=True)
class Address:
    """What a session knows of its link beside the query.

    Attributes:
        view: the words of the fragment, as the browser said them last, with what was written since.
        drawn: the view by which the page's run has drawn; None where it leaves that to the
            explorer, which asks for what it shows.
        in_query: the words of a view in the query, as they were read last.
        written: what was written last for each word of the query; None for left out.
        replaced: what stood there before, since the browser's last Back.
        changes: what was written into the fragment and the browser has not confirmed.
        number: counts those writings.
        is_step: whether the newest of them is what a person did, and so a step of the browser's
            history.
        has_query_step: whether the run has written the query, for which Streamlit makes that step.
        has_unsent: whether a callback wrote into the query and the browser does not know it yet.
    """

    view: dict[str, str] = field(default_factory=dict)
    drawn: dict[str, str] | None = None
    in_query: dict[str, str] = field(default_factory=dict)
    written: dict[str, str | None] = field(default_factory=dict)
    replaced: dict[str, set[str | None]] = field(default_factory=dict)
    changes: dict[str, str | None] = field(default_factory=dict)
    number: int = 0
    is_step: bool = False
    has_query_step: bool = False
    has_unsent: bool = False

    def receive(self, message: object) -> None:
        """Read the fragment from a message of the browser, which can be anything; in any thread.

        The message has the number of the newest writing that the browser knew: later ones stay.
        """
        match message:
            case {"fragment": str(fragment), "number": int(number)}:
                pairs = dict(parse_qsl(fragment[:_LONGEST], keep_blank_values=True))
                view = {name: text for name, text in pairs.items() if name in view_words()}
                if number < self.number:
                    view = _changed(view, self.changes)
                else:
                    self.changes = {}
                self.view = view


def address() -> Address:
    """Return what this session knows of its link."""
    known: Address | None = st.session_state.get(_ADDRESS)
    if known is None:
        known = st.session_state[_ADDRESS] = Address()
        _read_old_link(known)
    return known


def _read_old_link(known: Address) -> None:
    """Take the view from a query that has another one than before."""
    in_query = {name: text for name, text in st.query_params.items() if name in view_words()}
    if in_query != known.in_query:
        known.in_query = in_query
        if in_query:
            known.view = dict(in_query)


def words() -> dict[str, str]:
    """Return all words of the link: those of the query and those of the fragment."""
    query = {name: text for name, text in st.query_params.items() if name not in view_words()}
    return query | address().view


def word(name: str) -> str | None:
    """Return a word of the link; None where it is left out."""
    return address().view.get(name) if name in view_words() else st.query_params.get(name)


def update_link(**changes: str | None) -> None:
    """Change the link; None leaves a word out.

    All that the callbacks of a click write is one step of the browser's history.

    What a widget of the page writes by ``bind="query-params"`` is not for this: Streamlit lets
    nobody else do it. Nothing is written by the callback of a widget whose value came with a step
    of the browser's history: a run before has taken it off the page, so that it only looks changed.
    """
    if streamlit_internals.is_callback_at_history_step():
        return
    if not streamlit_internals.is_from_history():
        settle_query()
    known = address()
    of_view = {name: text for name, text in changes.items() if name in view_words()}
    of_query = {
        name: text
        for name, text in changes.items()
        if name not in view_words() and text != st.query_params.get(name)
    }
    for name in _held() & of_query.keys():
        before = known.replaced.setdefault(name, set())
        before.add(st.query_params.get(name))
        before.discard(of_query[name])
        known.written[name] = of_query[name]
    if any(known.view.get(name) != text for name, text in of_view.items()):
        known.view = _changed(known.view, of_view)
        known.changes |= of_view
        known.is_step = streamlit_internals.is_callback()
        known.number += 1
    if of_query:  # last: a click that ends the run here undoes nothing of it
        known.has_query_step = True
        _write_query(of_query)


def settle_query() -> None:
    """Tell the browser what callbacks wrote, and write again what a click in flight has undone.

    To be called before the link is read, once a run. The browser's Back comes with an earlier query
    too, and there it is meant.
    """
    known = address()
    _read_old_link(known)
    if known.has_unsent and not streamlit_internals.is_callback():
        known.has_unsent = False
        streamlit_internals.send_query()
    if streamlit_internals.is_from_history():
        known.replaced.clear()
        return
    undone = {
        name: known.written[name]
        for name, before in known.replaced.items()
        if st.query_params.get(name) in before
    }
    if undone:
        _write_query(undone)


def _write_query(changes: Mapping[str, str | None]) -> None:
    """Write words of the query, and leave out those of a view: they are in the fragment by now."""
    known = address()
    streamlit_internals.write_query({**dict.fromkeys(known.in_query), **changes})
    if streamlit_internals.is_callback():
        known.has_unsent = True
    else:
        streamlit_internals.send_query()


def _changed(view: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    whole = {**view, **changes}
    return {name: text for name, text in whole.items() if text is not None}


def browser_says() -> Callable[[object], None]:
    """Return what takes over, in any thread, what this session's browser says of the fragment."""
    return address().receive

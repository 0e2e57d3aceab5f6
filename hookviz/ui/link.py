"""Read and write the page's link: Streamlit's query, and the fragment with the explorer's view.

A change of the fragment (`view_words`) costs no run of the page, and Streamlit does not send it to
its server. ``address.js`` does: with each request of the explorer, and after a run that drew
another view than the fragment's. Old links have the view in the query, from which it is read once.

A click comes with the browser's query. Of two quick clicks the second may have been sent before the
browser had the first one's changes, and Streamlit uses the newest query. So a query with an earlier
value gets the newest write again, unless it came by the browser's Back.
"""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qsl, urlsplit

import streamlit as st

from hookviz.classroom.link_parameters import PARAMETERS
from hookviz.explorer.view import choices
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.running import list_lenses
from hookviz.settings import host_names, is_own_address, settings
from hookviz.ui import streamlit_internals

_LONGEST = 20_000  # letters of a fragment that are read
_ADDRESS = "_address"  # no widget has this key, so no link can set it


@cache
def view_words() -> frozenset[str]:
    """Return the parameters in the fragment, which the explorer's client writes."""
    of_view = {choice.word for choice in choices().values() if not choice.is_page}
    return frozenset({"mirror", *of_view, *named_channels()})


@cache
def named_channels() -> tuple[str, ...]:
    """Return the parameters of lenses that name channels in place of the explorer's channel."""
    return tuple(
        f"{lens.slug}-{parameter.name}"
        for lens in list_lenses()
        for parameter in lens.parameters
        if isinstance(parameter, kinds.Channels)
    )


@cache
def _own_words() -> frozenset[str]:
    """Return the parameters of the query that no widget binds: Streamlit writes bound ones."""
    return frozenset(each.name for each in PARAMETERS if each.is_held) - view_words()


@dataclass(slots=True)
class Address:
    """State of a session's link beside the query.

    Attributes:
        view: the fragment, the browser's last one with the changes since.
        drawn: the view that the page's run has drawn; None if only the explorer draws it.
        in_query: the view in the query of an old link, when it was last read.
        written: the last written value of each word of the query; None for left out.
        replaced: the values before those, since the browser's last Back.
        changes: writes into the fragment that the browser has not confirmed.
        number: of the newest of those writes.
        is_step: whether a person caused it, so that it is a step of the browser's history.
        has_query_step: whether the run has written the query, for which Streamlit makes that step.
        has_unsent: whether a callback wrote into the query and the browser has not been told.
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
        """Read the fragment from a browser's message of any form, in any thread.

        The message has the number of the newest write that the browser knew: later ones stay.
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
    """Return the state of this session's link."""
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
    """Change words of the link; None leaves a word out.

    All changes by the callbacks of one click are one step of the browser's history. Words of a
    widget with ``bind="query-params"`` can't be changed so: only Streamlit writes them.

    The callback of a widget at a step of the browser's history writes nothing: a run before has
    removed the widget, and its value has not changed.
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
    for name in _own_words() & of_query.keys():
        before = known.replaced.setdefault(name, set())
        before.add(st.query_params.get(name))
        before.discard(of_query[name])
        known.written[name] = of_query[name]
    if any(known.view.get(name) != text for name, text in of_view.items()):
        known.view = _changed(known.view, of_view)
        known.changes |= of_view
        known.is_step = streamlit_internals.is_callback()
        known.number += 1
    if of_query:  # last: a click may end the run here
        known.has_query_step = True
        _write_query(of_query)


def settle_query() -> None:
    """Send the callbacks' changes to the browser, and repeat those that a quick click has undone.

    For use once a run, before the link is read. An earlier query by the browser's Back is valid.
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
    """Write words of the query, without an old link's view, which the fragment has."""
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
    """Return the callback, for any thread, for this session's messages about the fragment."""
    return address().receive


def address_for_others(url: str) -> str | None:
    """Return the page's address for other devices; None where they can't reach it.

    An address that means this machine alone, such as 127.0.0.1, is replaced by the machine's own in
    its network if the server listens there, and under any name.
    """
    parts = urlsplit(url)
    if not is_own_address(parts.hostname or ""):
        return url
    listens = str(st.get_option("server.address") or "0.0.0.0")  # noqa: S104 - Streamlit's default
    own = None if is_own_address(listens) or host_names(settings().hosts) else _own_address()
    return own and parts._replace(netloc=f"{own}:{parts.port or 80}").geturl()


def _own_address() -> str | None:
    """Return this machine's address in its network; None without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # of RFC 5737: it chooses the route, and sends nothing
            own = str(probe.getsockname()[0])
        except OSError:
            return None
    return None if is_own_address(own) else own


def qr_code(link: str) -> str:
    """Return a QR code as a URL of an SVG picture, black on white in any theme, with a margin."""
    import segno  # noqa: PLC0415 - takes 50 ms, for pages with a code alone

    code = segno.make(link, error="m", micro=False)
    return code.svg_data_uri(scale=8, border=4, dark="#000", light="#fff")

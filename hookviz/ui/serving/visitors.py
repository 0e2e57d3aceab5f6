"""Know who a visitor is: the address, whether on this machine, whether they came in.

- The address tells one visitor from another, to count by. Behind a proxy it is as the proxy says.
- Lines of a person's own may be run where the page is open on the server's own machine. The setting
  says that the server was started for one person. What the browser itself says of where it is, and
  that nothing passed the connection on, is asked beside it, in case that a proxy was put before the
  server.
- Sessions that came in by the class code or a login are admitted to the routes beside the page.
"""

from collections.abc import Mapping
from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import streamlit as st
from starlette.types import Scope

from hookviz.settings import is_own_address, networks, settings
from hookviz.ui.streamlit_internals import session_id

_Address = IPv4Address | IPv6Address

_V6_BITS = 64  # the first of them are a line's; the rest is chosen by who has it
_PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
_admitted: dict[str, str] = {}  # Streamlit's id, by the session's own name


def client_address(scope: Scope) -> str:
    """Return the address that a connection comes from; of IPv6 its /64, and empty where unknown.

    What ``X-Forwarded-For`` says counts as far as proxies of ``HOOKVIZ_PROXIES`` wrote it: the
    rightmost address that is none of theirs.
    """
    lines = [value for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return _address((scope.get("client") or ("",))[0], b",".join(lines).decode("latin-1"))


def page_address() -> str:
    """Return the `client_address` of this session's page; this machine's where there is none."""
    # Streamlit names no address of this machine itself, where a proxy may be.
    forwarded = st.context.headers.get_all("X-Forwarded-For")
    return _address(st.context.ip_address or "127.0.0.1", ",".join(forwarded))


def asker() -> tuple[str, str]:
    """Return the `page_address` and the id of the session whose run this is; else empty ones."""
    session = session_id()
    return ("", "") if session is None else (page_address(), session)


def _address(peer: str, forwarded: str) -> str:
    """Return the address behind a peer, where headers ``X-Forwarded-For`` say this."""
    address = _parsed(peer)
    if address is None:
        return ""
    for said in reversed(forwarded.split(",") if _is_proxy(address) else []):
        before = _parsed(said)
        if before is None:  # no proxy of ours wrote it
            break
        address = before
        if not _is_proxy(address):
            break
    if isinstance(address, IPv6Address):
        return str(IPv6Network((int(address), _V6_BITS), strict=False))
    return str(address)


def _parsed(text: str) -> _Address | None:
    """Return an address, which may have a port; None where it is none."""
    try:
        address = ip_address(text.strip())
    except ValueError:
        try:
            address = ip_address(urlsplit(f"//{text.strip()}").hostname or "")
        except ValueError:
            return None
    # A socket for both families shows a visitor of the older one so.
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address


def _is_proxy(address: _Address) -> bool:
    return any(address in network for network in _proxies())


@cache
def _proxies() -> tuple[IPv4Network | IPv6Network, ...]:
    return networks(settings().proxies)


def may_run_code() -> bool:
    """Return whether who looks at this page may run lines of their own on this machine."""
    return bool(settings().code) and is_here(st.context.headers)


def is_here(headers: Mapping[str, str]) -> bool:
    """Return whether a connection with those headers was opened on this machine by its own name."""
    known = {name.lower(): value for name, value in headers.items()}
    if any(name in known for name in _PASSED_ON):
        return False
    addresses = (f"//{known.get('host', '')}", known.get("origin", ""))
    return all(_is_own(address) for address in addresses)


def _is_own(address: str) -> bool:
    try:
        return is_own_address(urlsplit(address).hostname or "")
    except ValueError:
        return False


def admit(name: str, session: str) -> None:
    """Note that a session came in, by its own name and by Streamlit's id for it."""
    _admitted[name] = session


def withdraw(name: str) -> None:
    """Forget a session that is over."""
    _admitted.pop(name, None)


def has_door() -> bool:
    """Return whether a class code or a login stands before the page."""
    return bool(settings().class_code or settings().login)


def is_admitted(session: str) -> bool:
    """Return whether a session, by Streamlit's id, may use more than the door: all may without one.

    A page that comes back is admitted as soon as it is drawn again.
    """
    return not has_door() or session in _admitted.values()

"""Tell one visitor's address from another's, to count by: behind a proxy, as the proxy says it."""

from functools import cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

import streamlit as st
from starlette.types import Scope

from hookviz.settings import networks, settings

_Address = IPv4Address | IPv6Address

_V6_BITS = 64  # the first of them are a line's; the rest is chosen by who has it


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

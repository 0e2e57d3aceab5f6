"""Tell whether the page is open on the server's own machine, where its user's code may be run.

The setting says that the server was started for one person. What the browser itself says of where
it is, and that nothing passed the connection on, is asked beside it, in case that a proxy was put
before the server.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

import streamlit as st

from hookviz.settings import is_own_address, settings

_PASSED_ON = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")


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

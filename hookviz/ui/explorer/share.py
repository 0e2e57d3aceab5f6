"""The link to what is on the screen."""

from urllib.parse import urlencode

import streamlit as st

from hookviz.ui.state import Shown


def show_share(shown: Shown) -> None:
    """The link to copy, and what it does not hold."""
    with st.popover("Share", icon=":material/share:", help="A link to what is on the screen"):
        if shown.file is None:
            st.warning(
                "Your photograph is not in the link: it stays in your session. Whoever opens the "
                "link sees the same model, layer and channel with a sample image.",
                icon=":material/no_photography:",
            )
        else:
            st.caption("Whoever opens this link sees the same.")
        base = str(st.context.url or "").partition("?")[0]
        query = urlencode([(key, st.query_params[key]) for key in st.query_params])
        st.code(f"{base}?{query}" if query else base, None, wrap_lines=True)

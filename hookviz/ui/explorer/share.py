"""The link to what is on the screen."""

from urllib.parse import urlencode

import streamlit as st

from hookviz.ui.state import Shown


def show_share(shown: Shown) -> None:
    """A button that opens the link to copy, and says what it does not hold."""
    with st.container(width="content"):  # a fragment by itself is as wide as it can be
        _show_popover(is_own=shown.file is None)


@st.fragment
def _show_popover(*, is_own: bool) -> None:
    """The button; its menu is filled once it is opened, and nothing else runs then."""
    with st.popover(
        "Share",
        icon=":material/share:",
        help="A link to what is on the screen",
        width="content",
        on_change="rerun",
        key="share",
    ) as menu:
        if not menu.open:
            return
        if is_own:
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

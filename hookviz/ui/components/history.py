"""What the browser's Back and Forward lead through."""

from functools import cache

import streamlit as st

from hookviz.ui.components.files import source


def keep_history() -> None:
    """Have the browser take one step of its history for each thing that a person does."""
    with st.container(key="hv-history"):
        st.html(_script(), unsafe_allow_javascript=True)


@cache
def _script() -> str:
    hidden = ".st-key-hv-history { display: none }"
    return f"<style>{hidden}</style><script>{source('history.js')}</script>"

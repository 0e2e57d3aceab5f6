"""The app with a lens of a test's own, which grows, for tests."""

from pathlib import Path

import streamlit as st

import hookviz.lenses
from hookviz.ui.serving import connections, lifecycle

_FOLDER = str(Path(__file__).parent / "lenses")
if _FOLDER not in hookviz.lenses.__path__:
    hookviz.lenses.__path__.append(_FOLDER)

app = st.App(
    lifecycle.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=lifecycle.ROUTES,
)

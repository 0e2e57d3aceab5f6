"""The app, with less patience for those who do not read, for tests."""

import streamlit as st

from hookviz.ui.serving import connections, lifecycle, slow_readers

slow_readers.PATIENCE = 2.0

app = st.App(
    lifecycle.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=lifecycle.ROUTES,
)

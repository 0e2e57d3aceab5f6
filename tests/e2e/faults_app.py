"""The app, with less patience for those who do not read, for tests."""

import streamlit as st

from hookviz.ui.serving import connections, early_server, flow_control, lifecycle

flow_control.SEND_TIMEOUT = 2.0

app = st.App(
    early_server.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=lifecycle.ROUTES,
)

"""Entry point of the app: ``streamlit run app.py``."""

import streamlit as st

from hookviz.ui.serving import connections, lifecycle

lifecycle.share_cores()
app = st.App(
    lifecycle.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=lifecycle.ROUTES,
)

"""Entry point of the app: ``streamlit run app.py``."""

import streamlit as st

from hookviz.ui.serving import early_server

app = st.App(
    early_server.SCRIPT,
    middleware=early_server.MIDDLEWARE,
    lifespan=early_server.lifespan,
    on_script_error=early_server.on_script_error,
)

"""Entry point of the app: ``streamlit run app.py``."""

import streamlit as st

from hookviz.machine import torch_loading
from hookviz.ui.serving import early_server

torch_loading.load_beside()  # while Streamlit's server starts

app = st.App(
    early_server.SCRIPT,
    middleware=early_server.MIDDLEWARE,
    lifespan=early_server.lifespan,
    on_script_error=early_server.on_script_error,
)

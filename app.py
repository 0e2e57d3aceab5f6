"""Entry point of the app: ``streamlit run app.py``."""

import streamlit as st

from hookviz.ui import serving

serving.share_cores()
app = st.App(
    serving.SCRIPT,
    lifespan=serving.lifespan,
    on_script_error=serving.on_script_error,
    routes=serving.ROUTES,
)

"""A page that offers its visitor a stream of frames, for tests and `scripts.live_speed`.

What it shows is in its link: ``?live=1&model=…&weights=…&step=…&sort=…``; ``?live=0`` takes the
offer back. The token stands in a text ``token:…``. Without ``live`` it is the app's own page.
"""

from functools import partial

import streamlit as st

from hookviz.explorer.rendering import look_of
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import View
from hookviz.live.frames import Subject
from hookviz.live.streams import streams
from hookviz.models import catalog
from hookviz.ui import page
from hookviz.ui.serving.login import let_in
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.serving.resources import use_model
from hookviz.ui.state import ModelChoice

asked = st.query_params
if not let_in():
    st.stop()
if "live" not in asked:
    page.show()
    st.stop()
if asked["live"] == "0":
    streams().withdraw(session())
    st.text("withdrawn")
    st.stop()
choice = ModelChoice(
    catalog.find_model(asked.get("model", "shapesnet")), asked.get("weights", "pretrained")
)
subject = Subject(
    use_model=partial(use_model, choice),
    size=int(asked["size"]) if "size" in asked else None,
    whole=False,
    step=asked.get("step", "stem.first.conv"),
    look=look_of(View(sort=asked.get("sort", "index")), Colours("RdBu_r", "inferno"), 64),
)
cookie = st.context.cookies.get("_streamlit_xsrf", "")
st.text(f"token:{streams().offer(session(), cookie, subject)}")

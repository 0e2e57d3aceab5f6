"""What happens around the page: warming up when the server starts, and errors of our own."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st

from hookviz import catalog, engine, render
from hookviz.ui import resources

SCRIPT = Path(__file__).with_name("main.py")
"""The page's script."""

_log = logging.getLogger("hookviz")


@asynccontextmanager
async def lifespan(_app: Any) -> AsyncIterator[None]:
    """Load the bundled model and draw one grid before the first visitor comes.

    The first pass and the first picture of a process take half a second longer than all later
    ones, while libraries set themselves up.
    """
    await asyncio.to_thread(warm_up)
    yield


def warm_up() -> None:
    """Do everything that the first page does, once."""
    model = resources.load(catalog.BUNDLED, "pretrained")
    sample = resources.samples()[0]
    capture = engine.capture(model, sample.path)
    render.make_grid(next(iter(capture.values()))).png()
    catalog.list_models()


def on_script_error(error: Exception) -> bool:
    """Log the traceback and show a short message: no traceback reaches the page."""
    _log.error("The page failed", exc_info=error)
    st.error(
        "Something went wrong on our side, and it has been logged. Your image and choices are "
        "still here: try again, or choose another model or layer.",
        icon=":material/error:",
    )
    return True

"""Offer files to download, each made when it is asked for."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st


class File(NamedTuple):
    """A file to download: what it is, what makes it when it is asked for, its name and its type."""

    label: str
    make: Callable[[], bytes | str]
    name: str
    mime: str


def offer(files: Sequence[File]) -> None:
    """Show a button for each file, which is made when it is asked for."""
    for file in files:
        st.download_button(
            file.label,
            file.make,
            file.name,
            file.mime,
            key=file.label,
            on_click="ignore",
            width="stretch",
        )

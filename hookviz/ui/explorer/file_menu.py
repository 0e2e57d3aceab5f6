"""A button that opens a menu of files to download."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import streamlit as st

from hookviz.ui.explorer.menu import menu


class File(NamedTuple):
    """A file to download: what it is, what makes it when it is asked for, its name and its type."""

    label: str
    make: Callable[[], bytes | str]
    name: str
    mime: str


def file_menu(label: str, files: Sequence[File], hint: str | None = None) -> None:
    """A menu of the files, each made when it is asked for."""
    menu(label, "download", f"menu-{label}", partial(_offer, files), hint)


def _offer(files: Sequence[File]) -> None:
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

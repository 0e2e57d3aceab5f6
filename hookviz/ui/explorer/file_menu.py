"""Show a button that opens a menu of files to download."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st

from hookviz.ui.menu import Menu


class File(NamedTuple):
    """A file to download: what it is, what makes it when it is asked for, its name and its type."""

    label: str
    make: Callable[[], bytes | str]
    name: str
    mime: str


def file_menu(
    label: str, list_files: Callable[[], Sequence[File]], hint: str | None = None
) -> Menu:
    """Return a menu of files, listed when it is opened and made when they are asked for."""
    return Menu(label, "download", f"menu-{label}", lambda: offer(list_files()), hint)


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

"""A button that opens a menu of files to download."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import streamlit as st


class File(NamedTuple):
    """A file to download: what it is, what makes it when it is asked for, its name and its type."""

    label: str
    make: Callable[[], bytes | str]
    name: str
    mime: str


def file_menu(label: str, files: Sequence[File], hint: str | None = None) -> None:
    """The button; its menu is filled once it is opened, and nothing else runs then."""
    with st.container(width="content"):  # a fragment by itself is as wide as it can be
        _show_popover(label, files, hint)


@st.fragment
def _show_popover(label: str, files: Sequence[File], hint: str | None) -> None:
    with st.popover(
        label,
        icon=":material/download:",
        help=hint,
        width="content",
        on_change="rerun",
        key=f"menu-{label}",
    ) as menu:
        if not menu.open:
            return
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

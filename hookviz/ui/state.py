"""Keep what a person has chosen in the link, and read it from there.

Widgets with ``bind="query-params"`` keep themselves there under their key. Layer, channel and cell
are written by hand, and read from there alone: so each choice is one entry in the browser's
history, and the list of layers can show more than the names that links hold.
"""

import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.errors import nearest_names, shorten
from hookviz.explaining.channel_mask import ChannelMask
from hookviz.images.samples import Sample, samples
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current
from hookviz.types import InputImage, ModelSpec
from hookviz.ui.link import update_link

Cell = tuple[int, int]
"""Row and column of a map; or how many of them it has."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Image on the screen and what it shows, in words; its file where it is a sample."""

    image: InputImage
    alt: str
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Model that was chosen, with where its weights come from.

    Attributes:
        spec: the catalog entry, or one's own model.
        weights: one of `WEIGHTS`.
        checkpoint: the uploaded weights where ``"yours"`` is chosen; None until they are there.
        labels: an uploaded list of class names, if any.
        mask: the channels of a layer that are silent, if any.
    """

    spec: ModelSpec
    weights: str
    checkpoint: UploadedFile | None = None
    labels: UploadedFile | None = None
    mask: ChannelMask | None = None


LISTS = ("conv", "maps")
"""Which layers are listed: convolutions, or whatever puts out maps."""

ALL_FAMILIES = mark("All families")
ON_DISK = mark("On this machine")
WEIGHTS = (mark("pretrained"), mark("random"), mark("yours"))
"""Where a model's weights can come from."""
SILENCED = "silenced"
"""What the link calls the channels that are silent."""


@dataclass(frozen=True, slots=True)
class View:
    """Options of how the channels are drawn: the arguments of `make_grid` by the same names."""

    sort: str
    top: int | None
    scale: str
    colormap: str | None


def choose(
    *,
    model: str | None = None,
    layer: str | None = None,
    layers: str | None = None,
    **choices: str,
) -> None:
    """Set widgets by their keys, as a click on them would.

    Args:
        model: a model's title.
        layer: whose output is looked at.
        layers: which of them are listed, one of `LISTS`; without, the list stays, unless `layer`
            is in another one.
        choices: any choice of words (`hookviz.ui.linked_choice`), by its key.
    """
    if model is not None:  # Streamlit keeps it in the link, and lets nobody else write it there
        st.session_state["model"] = model
    for key, value in choices.items():
        st.session_state[key] = value
    if current() != ENGLISH:  # where they are set by the link
        update_link(**choices)
    asked = {"layer": layer, "layers": layers}
    update_link(**{name: value for name, value in asked.items() if value is not None})


def chosen_sample() -> Sample:
    """Return the sample that the link names, or the first."""
    return next(
        (sample for sample in samples() if sample.name == st.query_params.get("sample")),
        samples()[0],
    )


def choose_sample(name: str) -> None:
    """Choose a sample and say so in the URL; the first one needs no saying."""
    update_link(sample=None if name == samples()[0].name else name)


def choose_upload(name: str | None) -> None:
    """Look at one of the session's own images; the link holds its name and nothing of it."""
    update_link(upload=name)


def chosen_upload() -> str | None:
    """Return the name in the link of one of the session's own images."""
    return st.query_params.get("upload") or None


def choose_channel(channel: int | None, layer: str | None = None) -> None:
    """Pick a channel up, of another layer if named, or put it down, and say so in the URL."""
    of = {} if layer is None or channel is None else {"layer": layer}
    update_link(channel=None if channel is None else str(channel), **of)


def chosen_channel(shown: Container[int]) -> int | None:
    """Return the channel in the link, where it is among those that are shown."""
    asked = st.query_params.get("channel", "")
    channel = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else -1
    return channel if channel in shown else None


def choose_cell(cell: Cell, size: Cell, channel: int | None = None) -> None:
    """Look at the cell in that row and column of a map of that size, and at a channel with it.

    All of it goes into the URL at once, so that it is one entry in the browser's history.
    """
    changes: dict[str, str | None] = {"cell": ",".join(map(str, (*cell, *size)))}
    if channel is not None:
        changes["channel"] = str(channel)
    update_link(**changes)


def chosen_cell(rows: int, columns: int) -> Cell:
    """Return the cell in the link, or the same place on a map of this size; else its middle.

    The URL has row and column, and rows and columns of the map that they were picked on: so the
    place on the photograph stays when another layer has another size.
    """
    asked = re.fullmatch(
        r"(\d{1,6}),(\d{1,6})(?:,(\d{1,6}),(\d{1,6}))?", st.query_params.get("cell", ""), re.ASCII
    )
    if asked is None:
        return rows // 2, columns // 2
    row, column = int(asked[1]), int(asked[2])
    if asked[3] is not None:
        row = int((row + 0.5) * rows / max(1, int(asked[3])))
        column = int((column + 0.5) * columns / max(1, int(asked[4])))
    return min(row, rows - 1), min(column, columns - 1)


def warn_about_link(parameter: str, known: list[str]) -> None:
    """Warn a person whose link names something that there is not.

    To be called before the widget of that name, which drops what it doesn't know.
    """
    asked = st.query_params.get(parameter)
    if asked is not None and asked not in known:
        near = nearest_names(asked, known, count=2)
        hint = say(" The nearest: {names}.", names=", ".join(near)) if near else ""
        st.warning(
            plain(
                say(
                    "This link asks for the {parameter} {value!r}, which is not here.",
                    parameter=say(parameter),
                    value=shorten(asked, 60),
                )
            )
            + plain(hint),
            icon=":material/link_off:",
        )


def plain(text: str) -> str:
    """Escape Markdown, since names come from files, links and people and could write markup."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in text)


_MARKUP = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

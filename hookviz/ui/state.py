"""Keep what a person has chosen in the link, and read it from there.

Choices are written by `hookviz.ui.linked_choice`, so that a link has English words in every
language; a lens's numbers and switches by Streamlit's ``bind="query-params"``.
"""

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.classroom.link_parameters import OWN_IMAGES
from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.explorer import view
from hookviz.explorer.layers import not_here
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import mark
from hookviz.types import InputImage, ModelSpec
from hookviz.ui.link import update_link

Cell = tuple[int, int]
"""Row and column of a map; or how many of them it has."""


def shows_sample() -> bool:
    """Return whether the image on the screen is a sample, and nobody's own."""
    return st.session_state.get("image") not in OWN_IMAGES


@dataclass(frozen=True, slots=True)
class Shown:
    """Image on the screen and what it shows, in words.

    Attributes:
        image: the image.
        alt: what it shows, in words.
        file: where it is a sample.
        upload: its name in a link, where it is one of the session's own.
    """

    image: InputImage
    alt: str
    file: Path | None = None
    upload: str = ""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Model that was chosen, with where its weights come from.

    Attributes:
        spec: the catalog entry, or one's own model.
        weights: one of `WEIGHTS`.
        checkpoint: the uploaded weights where ``"yours"`` is chosen; None until they are there.
        labels: an uploaded list of class names, if any.
        mask: the channels of a layer that are silent, if any.
        output: what its output is, one of `KINDS`; empty where that is left to the network.
    """

    spec: ModelSpec
    weights: str
    checkpoint: UploadedFile | None = None
    labels: UploadedFile | None = None
    mask: ChannelMask | None = None
    output: str = ""


ALL_FAMILIES = mark("All families")
ON_DISK = mark("On this machine")
WEIGHTS = (mark("pretrained"), mark("random"), mark("yours"))
"""Where a model's weights can come from."""
_UNSAID = {choice.word: choice.default for choice in view.choices().values()}
TARGET = "target"
"""What the link calls the class that lenses are asked about."""
SILENCED = "silenced"
"""What the link calls the channels that are silent."""


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
    asked = {"model": model, "layer": layer, "layers": layers, **choices}
    update_link(
        **{
            word: None if text == _UNSAID.get(word) else text
            for word, text in asked.items()
            if text is not None
        }
    )


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


def warn_about_link(parameter: str, known: list[str]) -> None:
    """Warn a person whose link names something that there is not.

    To be called before the widget of that name, which drops what it doesn't know.
    """
    asked = st.query_params.get(parameter)
    if asked is not None and asked not in known:
        warn(not_here(parameter, asked, known))


def warn(words: str) -> None:
    """Show what is wrong with a link, if anything is."""
    if words:
        st.warning(plain(words), icon=":material/link_off:")


def plain(text: str) -> str:
    """Escape Markdown, since names come from files, links and people and could write markup."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in text)


_MARKUP = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

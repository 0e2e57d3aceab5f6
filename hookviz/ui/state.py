"""Keep what a person has chosen in the link, and read it from there.

`linked_choice` writes names, so that a link has English words in every language. Streamlit's
``bind="query-params"`` would write the words on the screen, which change with language and image;
it writes a lens's numbers and switches alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.classroom.link_parameters import OWN_IMAGES
from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.explorer import view
from hookviz.explorer.layers import not_here
from hookviz.images import reading
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import mark, say
from hookviz.types import InputImage, ModelSpec
from hookviz.ui.link import update_link

Cell = tuple[int, int]
"""Row and column of a map, or its numbers of rows and columns."""


@dataclass(frozen=True, slots=True)
class ImageChoice:
    """Image that was chosen.

    Attributes:
        image: the image.
        alt: its description.
        file: of a sample; None for the session's own image.
        upload: name in a link of the session's own image; empty for a sample.
    """

    image: InputImage
    alt: str
    file: Path | None = None
    upload: str = ""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Model that was chosen, with the source of its weights.

    Attributes:
        spec: the catalog entry, or the entry of a model from the command line.
        weights: one of `WEIGHTS`.
        checkpoint: uploaded weights, for ``"yours"``; None until they are uploaded.
        labels: uploaded class names, if any.
        mask: silenced channels of a layer, if any.
        output: kind of the output, one of `KINDS`; empty for the network's own declaration.
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
"""Sources of a model's weights."""
TARGET = "target"
"""Link parameter: the class that lenses explain."""
SILENCED = "silenced"
"""Link parameter: the silenced channels."""

_DEFAULTS = {choice.word: choice.default for choice in view.choices().values()}
_UNSET = object()
_MARKUP = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def choose(**choices: str) -> None:
    """Choose by link parameter, such as ``model="ResNet-18"``; the link leaves out a default."""
    update_link(
        **{word: None if text == _DEFAULTS.get(word) else text for word, text in choices.items()}
    )


def shows_sample() -> bool:
    """Return whether the chosen image is a sample."""
    return st.session_state.get("image") not in OWN_IMAGES


def chosen_sample() -> Sample:
    """Return the sample in the link, or the first."""
    return next(
        (sample for sample in samples() if sample.name == st.query_params.get("sample")),
        samples()[0],
    )


@cache  # all samples take a few megabytes
def sample_image(sample: Sample) -> InputImage:
    """Read a sample, once."""
    return reading.read(sample.path)


@cache
def sample_names() -> Mapping[str, str]:
    """Return the names of the samples, by the digests of their pixels."""
    return {sample_image(each).digest: each.name for each in samples()}


def choose_sample(name: str) -> None:
    """Choose a sample in the link, which leaves the first one out."""
    update_link(sample=None if name == samples()[0].name else name)


def open_sample(name: str) -> None:
    """Choose a sample, whichever kind of image was chosen before."""
    choose(image="Samples")
    choose_sample(name)


def choose_upload(name: str | None) -> None:
    """Choose one of the session's own images by its name in the link."""
    update_link(upload=name)


def open_upload(name: str) -> None:
    """Choose one of the session's own images, whichever kind of image was chosen before."""
    choose(image="Upload", upload=name)


def chosen_upload() -> str | None:
    """Return the name in the link of one of the session's own images."""
    return st.query_params.get("upload") or None


def warn_about_link(parameter: str, known: list[str]) -> None:
    """Warn of an unknown value in the link; for use before the widget, which drops the value."""
    value = st.query_params.get(parameter)
    if value is not None and value not in known:
        warn(not_here(parameter, value, known))


def warn(text: str) -> None:
    """Show a warning about a link; an empty text shows nothing."""
    if text:
        st.warning(plain(text), icon=":material/link_off:")


def plain(text: str) -> str:
    """Escape Markdown: names from files, links and people could contain markup."""
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in text)


def linked_choice(
    widget: Callable[..., Any],
    label: str,
    options: Sequence[str] | Mapping[str, str],
    key: str,
    *,
    first: str | None,
    also: Callable[[str | None], Mapping[str, str | None]] = lambda _: {},
    **settings: Any,
) -> str | None:
    """Show a choice that the link has by its name, and return the chosen name.

    Args:
        widget: ``st.selectbox`` or ``st.segmented_control``.
        label: of the widget.
        options: the words on the screen by their names in the link; or a sequence of English words
            from `mark`, which are both.
        key: of the widget, and of the parameter in the link.
        first: the choice without a word in the link; None for no choice.
        also: returns further changes of the link for a choice.
        settings: further arguments of the widget.
    """
    labels = options if isinstance(options, Mapping) else {name: say(name) for name in options}
    in_link = st.query_params.get(key)
    chosen_before = in_link if in_link in labels else first
    if st.session_state.get(key, _UNSET) != chosen_before:  # each write is sent to the page
        st.session_state[key] = chosen_before

    def write_link() -> None:
        chosen: str | None = st.session_state[key]
        update_link(**{key: None if chosen == first else chosen}, **also(chosen))

    chosen = widget(
        label,
        list(labels),
        key=key,
        format_func=lambda name: labels.get(name, name),
        on_change=write_link,
        **settings,
    )
    return chosen if isinstance(chosen, str) else None

"""Choose the image that is looked at: a sample, a file, a photograph or a stream of frames."""

from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.classroom.link_parameters import LIVE, OWN_FILES
from hookviz.errors import HookVizError
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current, speaking
from hookviz.settings import settings
from hookviz.types import InputImage, Model, Preprocess
from hookviz.ui.components.pictures import Thumbnail, gallery, thumbnail
from hookviz.ui.link import update_link, word
from hookviz.ui.live import take_frame
from hookviz.ui.recent_images import (
    RecentImage,
    find_recent,
    hold_for_reload,
    keep_and_select,
    pick_page,
    read_recent,
    recent_images,
    take_brought,
)
from hookviz.ui.serving import resources
from hookviz.ui.state import (
    ImageChoice,
    choose_sample,
    choose_upload,
    chosen_sample,
    chosen_upload,
    linked_choice,
    plain,
)

_SAMPLES = mark("Samples")
# Keys of session_state that no widget has can't be set from outside.
_LAST, _STANDS_IN = "_last-file", "_stands-in"


def pick_image() -> ImageChoice:
    """Show the choice of an image, and return it: a sample, an upload or a photograph just taken.

    A file that can't be read is refused where it was given, and the image before stays. Where a
    link or a reload asks for somebody's own photograph, which no link holds, a sample stands in for
    it until one is given; `say_stand_in` says so.
    """
    st.session_state[_STANDS_IN] = False
    arrived_with = st.session_state.setdefault("_arrived", st.query_params.get("image", _SAMPLES))
    origin = linked_choice(
        st.segmented_control,
        say("Image"),
        (_SAMPLES, *OWN_FILES, *((LIVE,) if settings().live else ())),
        "image",
        first=_SAMPLES,
        required=True,
        width="stretch",
    )
    if origin == LIVE:  # the layers are read with a sample, whose pixels nobody sees
        return _shown_sample()
    if origin not in OWN_FILES:  # an empty word in a link clears the choice
        st.session_state["_arrived"] = _SAMPLES
        gallery(
            "gallery",
            say("Sample image"),
            _sample_thumbnails(current()),
            chosen_sample().name,
            choose_sample,
        )
        return _shown_sample()
    if origin == "Upload":
        file = st.file_uploader(
            say("An image file"),
            resources.IMAGE_TYPES,
            max_upload_size=settings().upload_mb,
            label_visibility="collapsed",
        )
    else:
        file = st.camera_input(say("A photograph"), label_visibility="collapsed")
    if file is not None:
        _take(file)
    take_frame()
    _take_brought()
    chosen = _pick_recent()
    if chosen is not None:
        name = chosen.thumbnail.title
        pick_page(chosen)
        with st.spinner(say("Reading the image…")):
            image = read_recent(chosen)
        if image.note:
            st.caption(plain(image.note))
        own = chosen.thumbnail.name
        return ImageChoice(image, say("Your image {name}", name=name), upload=own)
    st.session_state[_STANDS_IN] = chosen_upload() is not None or (
        arrived_with == origin and not recent_images()
    )
    return _shown_sample()


def _shown_sample() -> ImageChoice:
    sample = chosen_sample()
    return ImageChoice(_decoded(sample.path), say(sample.alt), sample.path)


@cache  # of the few samples that there are
def _decoded(path: Path) -> InputImage:
    return reading.read(path)


@cache
def _sample_thumbnails(language: str) -> tuple[Thumbnail, ...]:
    """Return small pictures of the samples, with their titles in that language."""
    thumbnails = []
    for sample in samples():
        with Image.open(sample.path) as picture, speaking(language):
            small = thumbnail(np.asarray(picture.convert("RGB")))
            thumbnails.append(Thumbnail(sample.name, say(sample.title), small))
    return tuple(thumbnails)


def _take(file: UploadedFile) -> None:
    """Look at a file that has just come, or say what is wrong with it.

    An uploader that is empty again says nothing: it is so for a moment before another file comes.
    """
    file_id, complaint = st.session_state.get(_LAST, ("", ""))
    if file_id != file.file_id:
        complaint = ""
        try:
            with st.spinner(say("Reading the image…")):
                keep_and_select(file.name, file.getvalue())
        except HookVizError as error:
            complaint = str(error)
        st.session_state[_LAST] = file.file_id, complaint
    if complaint:
        st.error(plain(complaint), icon=":material/broken_image:")


def _take_brought() -> None:
    """Look at a file that a click led to, or say what is wrong with it."""
    brought = take_brought()
    if brought is None:
        return
    try:
        with st.spinner(say("Reading the image…")):
            keep_and_select(Path(brought.name).name, brought.data, brought.digest, brought.upload)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/broken_image:")


def _pick_recent() -> RecentImage | None:
    """Show the session's recent images to choose from; return the chosen one, if any."""
    name = chosen_upload()
    chosen = find_recent(name)
    hold_for_reload()
    kept = recent_images()
    if kept:
        gallery(
            "recent",
            say("Your recent images"),
            [each.thumbnail for each in kept],
            name,
            choose_upload,
        )
    return chosen


def say_stand_in() -> None:
    """Say that a sample stands in for a photograph, and what its owner can do."""
    if st.session_state.get(_STANDS_IN):
        st.info(
            say(
                "This view was of somebody's own photograph, which no link holds: here it is on a "
                "sample. Is it yours? Upload it again in the sidebar."
            ),
            icon=":material/no_photography:",
        )


_OWN = mark("as trained")  # for every model, or a link would keep the size of the one before
_SIZES = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)


def pick_input(model: Model) -> tuple[int | None, bool]:
    """Return the input's side in pixels, None for the model's own, and whether to show it whole."""
    if not isinstance(model.preprocess, Preprocess):
        return None, False
    sizes = {_OWN: None} | {
        f"{size} px": size
        for size in _SIZES
        if model.min_size <= size <= settings().max_input and size != model.preprocess.crop
    }
    with st.expander(say("Input size and crop")):
        label = say("Input size (trained on {crop} px)", crop=model.preprocess.crop)
        size = linked_choice(st.selectbox, label, list(sizes), "size", first=_OWN) or _OWN
        st.session_state["whole"] = word("whole") == "true"
        whole = st.toggle(
            say("Whole image"),
            key="whole",
            on_change=lambda: update_link(whole="true" if st.session_state["whole"] else None),
            help=say("Models are trained on the centre of an image. This shows them all of it."),
        )
    return sizes[size], whole

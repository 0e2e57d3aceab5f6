"""Choose the image (a sample, a file, a photograph or a live stream) and the input's size."""

from functools import cache
from pathlib import Path

import numpy as np
import streamlit as st
from PIL import Image
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.classroom.link_parameters import LIVE, OWN_FILES
from hookviz.errors import HookVizError
from hookviz.images.samples import samples
from hookviz.language.saying import mark, say
from hookviz.language.speaking import current, speaking
from hookviz.settings import settings
from hookviz.types import Model, Preprocess
from hookviz.ui.components.pictures import Thumbnail, gallery, thumbnail
from hookviz.ui.link import update_link, word
from hookviz.ui.live import open_frozen_frame
from hookviz.ui.recent_images import (
    RecentImage,
    find_recent,
    keep_and_select,
    pick_page,
    pop_pending,
    read_recent,
    recent_images,
    save_for_reload,
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
    sample_image,
    warn_about_link,
)

_SAMPLES = mark("Samples")
_OWN_SIZE = mark("as trained")  # for every model, or a link would keep the size of another model
_SIZES = (64, 96, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 1024)
# No widget has these keys, so no link can set them.
_LAST, _STANDS_IN = "_last-file", "_stands-in"


def pick_image() -> ImageChoice:
    """Show the choice of an image, and return the chosen one.

    A file that can't be read is refused beside its uploader, and the image before stays. No link
    holds a photograph: a sample stands in for one, and `explain_stand_in` tells the person.
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
    if origin == LIVE:  # a sample gives the layers' shapes
        return _sample_choice()
    if origin not in OWN_FILES:  # an empty word in a link clears the choice
        st.session_state["_arrived"] = _SAMPLES
        warn_about_link(mark("sample"), [each.name for each in samples()])
        gallery(
            "gallery",
            say("Sample image"),
            _sample_thumbnails(current()),
            chosen_sample().name,
            choose_sample,
        )
        return _sample_choice()
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
        _open_upload(file)
    open_frozen_frame()
    _open_pending()
    recent = _pick_recent()
    if recent is not None:
        pick_page(recent)
        with st.spinner(say("Reading the image…")):
            image = read_recent(recent)
        if image.note:
            st.caption(plain(image.note))
        name, title = recent.thumbnail.name, recent.thumbnail.title
        return ImageChoice(image, say("Your image {name}", name=title), upload=name)
    st.session_state[_STANDS_IN] = chosen_upload() is not None or (
        arrived_with == origin and not recent_images()
    )
    return _sample_choice()


def _sample_choice() -> ImageChoice:
    sample = chosen_sample()
    return ImageChoice(sample_image(sample), say(sample.alt), sample.path)


@cache
def _sample_thumbnails(language: str) -> tuple[Thumbnail, ...]:
    """Return thumbnails of the samples, with their titles in a language."""
    thumbnails = []
    for sample in samples():
        with Image.open(sample.path) as picture, speaking(language):
            small = thumbnail(np.asarray(picture.convert("RGB")))
            thumbnails.append(Thumbnail(sample.name, say(sample.title), small))
    return tuple(thumbnails)


def _open_upload(file: UploadedFile) -> None:
    """Open a new file of the uploader, or show why it can't be read.

    The error of the last file stays until another one comes: the uploader is empty in between.
    """
    file_id, error_text = st.session_state.get(_LAST, ("", ""))
    if file_id != file.file_id:
        error_text = ""
        try:
            with st.spinner(say("Reading the image…")):
                keep_and_select(file.name, file.getvalue())
        except HookVizError as error:
            error_text = str(error)
        st.session_state[_LAST] = file.file_id, error_text
    if error_text:
        st.error(plain(error_text), icon=":material/broken_image:")


def _open_pending() -> None:
    """Open the file to which a click led, or show why it can't be read."""
    pending = pop_pending()
    if pending is None:
        return
    try:
        with st.spinner(say("Reading the image…")):
            keep_and_select(Path(pending.name).name, pending.data, pending.digest, pending.upload)
    except HookVizError as error:
        st.error(plain(str(error)), icon=":material/broken_image:")


def _pick_recent() -> RecentImage | None:
    """Show the session's recent images; return the chosen one, if any."""
    name = chosen_upload()
    chosen = find_recent(name)
    save_for_reload()
    recent = recent_images()
    if recent:
        thumbnails = [each.thumbnail for each in recent]
        gallery("recent", say("Your recent images"), thumbnails, name, choose_upload)
    return chosen


def explain_stand_in() -> None:
    """Tell the person that a sample stands in for a photograph, and how to bring it back."""
    if st.session_state.get(_STANDS_IN):
        st.info(
            say(
                "This view was of somebody's own photograph, which no link holds: here it is on a "
                "sample. Is it yours? Upload it again in the sidebar."
            ),
            icon=":material/no_photography:",
        )


def pick_input(model: Model) -> tuple[int | None, bool]:
    """Show the choice of the input's size and crop.

    Returns:
        The input's side in pixels, None for the model's own; and whether it has the whole image.
    """
    if not isinstance(model.preprocess, Preprocess):
        return None, False
    sizes = {_OWN_SIZE: None} | {
        f"{size} px": size
        for size in _SIZES
        if model.min_size <= size <= settings().max_input and size != model.preprocess.crop
    }
    label = say("Input size (trained on {crop} px)", crop=model.preprocess.crop)
    size = linked_choice(st.selectbox, label, list(sizes), "size", first=_OWN_SIZE)
    st.session_state["whole"] = word("whole") == "true"
    whole = st.toggle(
        say("Whole image"),
        key="whole",
        on_change=lambda: update_link(whole="true" if st.session_state["whole"] else None),
        help=say("Models are trained on the centre of an image. This shows them all of it."),
    )
    return sizes[size or _OWN_SIZE], whole

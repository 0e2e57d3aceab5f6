"""Which image is looked at: a sample, a file or a photograph."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.images import reading
from hookviz.settings import settings
from hookviz.ui.components.gallery import gallery
from hookviz.ui.serving import resources
from hookviz.ui.state import Shown, choose, choose_sample, chosen_sample

_SAMPLES = "Samples"


def pick_image() -> Shown | None:
    """The image: a sample, an uploaded file or a photograph just taken.

    None where a link or a reload asks for somebody's own photograph, which no link holds, until one
    is given.

    Raises:
        ImageError: the uploaded file can't be read.
    """
    arrived_with = st.session_state.setdefault("_arrived", st.query_params.get("image", _SAMPLES))
    origin = st.segmented_control(
        "Image",
        (_SAMPLES, "Upload", "Camera"),
        default=_SAMPLES,
        required=True,
        width="stretch",
        key="image",
        bind="query-params",
    )
    file: UploadedFile | None = None
    if origin == "Upload":
        file = st.file_uploader(
            "An image file",
            resources.IMAGE_TYPES,
            max_upload_size=settings().upload_mb,
            label_visibility="collapsed",
        )
    elif origin == "Camera":
        file = st.camera_input("A photograph", label_visibility="collapsed")
    else:
        gallery(chosen_sample().name, choose_sample)
    if origin == _SAMPLES or file is not None:
        st.session_state["_arrived"] = _SAMPLES
    elif arrived_with == origin:
        return None
    if file is not None:
        with st.spinner("Reading the image…"):
            image = resources.decode(file.getvalue(), file.name, file.file_id)
        return Shown(image, f"Your image {file.name}")
    sample = chosen_sample()
    return Shown(reading.read(sample.path), sample.alt, sample.path)


def ask_for_image() -> None:
    """Say that the photograph is not in the link, and what to do."""
    st.info(
        "This link was made with somebody's own photograph, which is not in it: it stayed in its "
        "own session. Upload it at the left, take another one, or look at a sample.",
        icon=":material/no_photography:",
    )
    st.button("Look at a sample", on_click=choose, kwargs={"image": _SAMPLES})

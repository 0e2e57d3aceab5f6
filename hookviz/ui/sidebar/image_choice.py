"""Which image is looked at: a sample, a file or a photograph."""

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from hookviz.images import reading
from hookviz.settings import settings
from hookviz.ui.components.gallery import gallery
from hookviz.ui.serving import resources
from hookviz.ui.state import Shown, choose_sample, chosen_sample


def pick_image() -> Shown:
    """The image: a sample, an uploaded file or a photograph just taken.

    Raises:
        ImageError: the uploaded file can't be read.
    """
    origin = st.segmented_control(
        "Image",
        ("Samples", "Upload", "Camera"),
        default="Samples",
        required=True,
        width="stretch",
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
    if file is not None:
        with st.spinner("Reading the image…"):
            image = resources.decode(file.getvalue(), file.name, file.file_id)
        return Shown(image, f"Your image {file.name}")
    sample = chosen_sample()
    return Shown(reading.read(sample.path), sample.alt, sample.path)

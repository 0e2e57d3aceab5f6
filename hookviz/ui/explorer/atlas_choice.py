"""Choose the atlas that is shown of a model: the session's own, or one that everybody sees."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager

import streamlit as st

from hookviz.atlas.atlas import Atlas, AtlasImage
from hookviz.atlas.files import atlas_of
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.serving.session_atlases import SessionAtlases
from hookviz.settings import settings
from hookviz.types import Model
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.streamlit_internals import forget_upload, uploaded_bytes

# Keys of session_state that no widget has can't be set from outside.
_OTHERS, _FILES = "_others-atlas", "_own-atlas-files"
_SHARE = 2  # an atlas takes at most one half of what a session keeps

File = tuple[str, str]
"""What an uploaded file is called, and Streamlit's name for it."""


@st.cache_resource(scope="session", on_release=SessionAtlases.end, show_spinner=False)
def session_atlases() -> SessionAtlases:
    """Return the atlases of this session, which end with it."""
    most = settings().session_mb * MEGABYTE // _SHARE
    return SessionAtlases(session(), resources.session_cache(), most)


def own_atlas(model: Model) -> Atlas | None:
    """Return the atlas that this session made of a model, if it is there."""
    atlas = session_atlases().atlas(model.digest)
    return atlas if atlas is not None and atlas.belongs_to(model) else None


def shown_atlas(model: Model) -> Atlas | None:
    """Return the session's own atlas of a model unless the other was chosen; None without any."""
    own = own_atlas(model) if is_own_shown() else None
    return own or atlas_of(model)


def atlas_words(model: Model) -> str:
    """Return among which images a model's atlas looks; empty without one."""
    atlas = shown_atlas(model)
    if atlas is None:
        return ""
    count = atlas.counts["tallied"]
    if atlas is own_atlas(model):
        return say("among your {count:,} images", count=count)
    return say("among {count:,} images", count=count)


def is_own_shown() -> bool:
    """Return whether the session's own atlas is shown where there is one."""
    return not st.session_state.get(_OTHERS)


def show_own(own: bool) -> None:
    """Show the session's own atlas from now on, or the other one."""
    st.session_state[_OTHERS] = not own


def make_own(
    use_model: Callable[[], AbstractContextManager[Model]], digest: str, files: Sequence[File]
) -> None:
    """Begin an atlas of uploaded files, of the model of that digest; lost files are left out."""
    listed = [(name, file, uploaded_bytes(file)) for name, file in files]
    available = [(name, file, data) for name, file, data in listed if data is not None]
    if not available:
        st.toast(say("These files are not here any more: upload them again."), duration="long")
        return
    names = session_atlases().make(use_model, digest, [(name, data) for name, _, data in available])
    numbers = {name: file for name, (_, file, _) in zip(names, available, strict=False)}
    st.session_state[_FILES] = {**_files(), digest: numbers}
    show_own(True)


def drop_own(digest: str) -> None:
    """Forget the session's atlas of a model, and the files that no other one is of."""
    session_atlases().drop(digest)
    files = dict(_files())
    gone = files.pop(digest, {})
    st.session_state[_FILES] = files
    kept = {file for numbers in files.values() for file in numbers.values()}
    for file in set(gone.values()) - kept:
        forget_upload(file)


def files_before(digest: str) -> list[File]:
    """Return the files of the atlas of the model of that digest, else of the one begun last."""
    files_of_all = _files()
    last = [*files_of_all.values()][-1] if files_of_all else {}
    return list(files_of_all.get(digest, last).items())


def own_file(digest: str, image: AtlasImage) -> bytes | None:
    """Return the bytes of an image in the session's atlas of that model, if they are there."""
    file = _files().get(digest, {}).get(image.name)
    return None if file is None else uploaded_bytes(file)


def _files() -> Mapping[str, Mapping[str, str]]:
    """Return Streamlit's name for each file, by a model's digest and its image's name."""
    files: Mapping[str, Mapping[str, str]] = st.session_state.get(_FILES, {})
    return files

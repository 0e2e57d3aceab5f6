"""Choose a model's atlas, the session's own or the shared one, and make one of uploaded images.

The choice is a dialog. While an atlas is made, a line over the explorer shows its progress and is
drawn again each second.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import streamlit as st

from hookviz.atlas.atlas import Atlas, AtlasImage
from hookviz.atlas.files import atlas_of
from hookviz.language.saying import say, say_count
from hookviz.machine.memory import MEGABYTE
from hookviz.serving.session_atlases import MOST, BuildStatus, SessionAtlases
from hookviz.settings import settings
from hookviz.types import Model
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import ModelChoice, plain
from hookviz.ui.streamlit_internals import forget_upload, uploaded_bytes
from hookviz.wording import number, time_left

# No widget has these keys, so no link can set them.
_SHOWS_OTHER, _FILES, _OPEN = "_others-atlas", "_own-atlas-files", "_choose-atlas"
_SHARE = 2  # an atlas may fill half of the session's cache
_EVERY_S = 1.0
_UPLOADER = "own-atlas-files"
_MOST_NAMED = 8  # images that were left out

File = tuple[str, str]
"""Name of an uploaded file, and Streamlit's name for it."""


@st.cache_resource(scope="session", on_release=SessionAtlases.end, show_spinner=False)
def session_atlases() -> SessionAtlases:
    """Return the atlases of this session, which end with it."""
    byte_limit = settings().session_mb * MEGABYTE // _SHARE
    return SessionAtlases(session(), resources.session_cache(), byte_limit)


def _own_atlas(model: Model) -> Atlas | None:
    """Return the atlas that this session made of a model, if any."""
    atlas = session_atlases().atlas(model.digest)
    return atlas if atlas is not None and atlas.belongs_to(model) else None


def chosen_atlas(model: Model) -> Atlas | None:
    """Return the session's own atlas of a model unless the other was chosen; None without any."""
    own = None if st.session_state.get(_SHOWS_OTHER) else _own_atlas(model)
    return own or atlas_of(model)


def atlas_words(model: Model) -> str:
    """Return the number of images in a model's atlas, in words; empty without an atlas."""
    atlas = chosen_atlas(model)
    if atlas is None:
        return ""
    count = atlas.counts["tallied"]
    if atlas is _own_atlas(model):
        return say("among your {count:,} images", count=count)
    return say("among {count:,} images", count=count)


def _make(
    use_model: Callable[[], AbstractContextManager[Model]], digest: str, files: Sequence[File]
) -> None:
    """Start an atlas of uploaded files for the model of a digest; lost files are left out."""
    uploads = [(name, file, uploaded_bytes(file)) for name, file in files]
    available = [(name, file, data) for name, file, data in uploads if data is not None]
    if not available:
        st.toast(say("These files are not here any more: upload them again."), duration="long")
        return
    names = session_atlases().make(use_model, digest, [(name, data) for name, _, data in available])
    numbers = {name: file for name, (_, file, _) in zip(names, available, strict=False)}
    st.session_state[_FILES] = {**_files(), digest: numbers}
    st.session_state[_SHOWS_OTHER] = False


def _drop(digest: str) -> None:
    """Delete the session's atlas of a model, and the files that only this atlas uses."""
    session_atlases().drop(digest)
    files = dict(_files())
    dropped = files.pop(digest, {})
    st.session_state[_FILES] = files
    in_use = {file for numbers in files.values() for file in numbers.values()}
    for file in set(dropped.values()) - in_use:
        forget_upload(file)


def _files_before(digest: str) -> list[File]:
    """Return the files of a model's atlas, or of the atlas that was started last."""
    files_of_all = _files()
    last = [*files_of_all.values()][-1] if files_of_all else {}
    return list(files_of_all.get(digest, last).items())


def own_file(digest: str, image: AtlasImage) -> bytes | None:
    """Return the bytes of an image in the session's atlas of a model, if they are here."""
    file = _files().get(digest, {}).get(image.name)
    return None if file is None else uploaded_bytes(file)


def _files() -> Mapping[str, Mapping[str, str]]:
    """Return Streamlit's name for each file, by a model's digest and its image's name."""
    files: Mapping[str, Mapping[str, str]] = st.session_state.get(_FILES, {})
    return files


@dataclass(frozen=True, slots=True)
class _Atlases:
    """The atlases of a network; it holds no model, since Streamlit keeps it.

    Attributes:
        choice: the network.
        digest: of the network.
        own: number of images in the session's atlas; None without one.
        others: number of images in the shared atlas; None without one.
        shows_own: whether the session's is chosen.
        left_out: the reason for each image that the session's atlas lacks, by name.
    """

    choice: ModelChoice = field(repr=False)
    digest: str
    own: int | None
    others: int | None
    shows_own: bool
    left_out: dict[str, str] = field(repr=False)


def open_atlases() -> None:
    """Open the choice in the next run of the page; for a callback."""
    st.session_state[_OPEN] = True


def show_atlases(model: Model, choice: ModelChoice) -> None:
    """Show the progress of the session's atlas, and the choice of atlases if it was opened."""
    own, others = _own_atlas(model), atlas_of(model)
    atlases = _Atlases(
        choice,
        model.digest,
        None if own is None else own.counts["tallied"],
        None if others is None else others.counts["tallied"],
        own is not None and chosen_atlas(model) is own,
        {} if own is None else dict(own.left_out),
    )
    state = _state(model.digest)
    if session_atlases().making is not None:
        st.fragment(_show_line, run_every=_EVERY_S if state.running else None)(atlases, state)
    if st.session_state.pop(_OPEN, False):
        st.dialog(say("Among which images"))(_choose)(atlases, state)


class _AtlasState(NamedTuple):
    """State of the session's atlas, whose change runs the page."""

    running: bool
    exists: bool
    shows_other: bool


def _state(digest: str) -> _AtlasState:
    atlases = session_atlases()
    making = atlases.making
    running = making is not None and making.running
    has_atlas = atlases.atlas(digest) is not None
    return _AtlasState(running, has_atlas, bool(st.session_state.get(_SHOWS_OTHER)))


def _show_line(atlases: _Atlases, before: _AtlasState) -> None:
    """Draw the line of an atlas in the making; `before` is the state when the page ran."""
    making = session_atlases().making
    if _state(atlases.digest) != before or making is None:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="hv-excites"):
        if making.running:
            _show_running(making)
        else:
            _show_ended(atlases, making)


def _show_running(making: BuildStatus) -> None:
    """Show the progress of the atlas, and a button that stops it."""
    st.caption(say("**Your atlas** {progress}", progress=_progress(making)), width="stretch")
    st.button(
        say("Stop"),
        icon=":material/stop:",
        type="tertiary",
        on_click=session_atlases().stop,
        key="hv-stop-atlas",
    )


def _choose(atlases: _Atlases, before: _AtlasState) -> None:
    """Draw the choice and an uploader for a new atlas; `before` is the state when the page ran."""
    if _state(atlases.digest) != before:
        st.rerun()
    if atlases.own is not None:
        _show_own(atlases)
    above_files = st.container()  # the files can be many
    files = st.file_uploader(
        say("An atlas of your own images"),
        resources.IMAGE_TYPES,
        accept_multiple_files=True,
        max_upload_size=settings().upload_mb,
        key=_UPLOADER,
        help=say("For each channel those that excite it most, of up to {limit} images", limit=MOST),
    )
    if files:
        used = [(file.name, file.file_id) for file in files[:MOST]]
        with above_files:
            _offer(say("Make it of {images}", images=_images(len(used))), atlases, used)
            if len(files) > MOST:
                st.caption(
                    say(
                        "These are {file_count}; the first {limit} count.",
                        file_count=len(files),
                        limit=MOST,
                    )
                )
        return
    files_before = _files_before(atlases.digest)
    if files_before and atlases.own is None:
        label = say("Make it of the {images} from before", images=_images(len(files_before)))
        with above_files:
            _offer(label, atlases, files_before)
    st.caption(say("They stay in this session and go with it."))


def _offer(label: str, atlases: _Atlases, files: list[File]) -> None:
    st.button(
        label,
        on_click=_make,
        args=(partial(resources.use_model, atlases.choice), atlases.digest, files),
        key="hv-make-atlas",
        type="primary",
    )


def _show_own(atlases: _Atlases) -> None:
    """Show the choice between two atlases, and the images that the session's own lacks."""
    assert atlases.own is not None
    if atlases.others is not None:
        own, others = (
            say("your {count:,}", count=atlases.own),
            say("{count:,} others", count=atlases.others),
        )
        st.segmented_control(
            say("Among which images"),
            (own, others),
            default=own if atlases.shows_own else others,
            required=True,
            key="own-or-others",
            on_change=lambda: st.session_state.update(
                {_SHOWS_OTHER: st.session_state["own-or-others"] != own}
            ),
        )
    for name, reason in list(atlases.left_out.items())[:_MOST_NAMED]:
        text = reason if name in reason else f"{name}: {reason}"
        st.caption(plain(say("Left out: {reason}", reason=text)))
    further = len(atlases.left_out) - _MOST_NAMED
    if further > 0:
        st.caption(say("And {count} more were left out.", count=further))
    st.button(say("Drop it"), on_click=_drop, args=(atlases.digest,), key="hv-drop-atlas")


def _show_ended(atlases: _Atlases, making: BuildStatus) -> None:
    """Show why the atlas failed, or where it was stopped, with a button to go on."""
    st.caption(
        plain(making.fault)
        if making.fault
        else say("Stopped: {progress}.", progress=_progress(making))
    )
    with st.container(horizontal=True):
        if not making.fault:
            st.button(say("Go on"), on_click=session_atlases().go_on, key="hv-go-on-atlas")
        elif files := _files_before(atlases.digest):
            _offer(say("Make it again"), atlases, files)
        st.button(say("Drop it"), on_click=_drop, args=(making.digest,), key="hv-drop-atlas")


def _progress(making: BuildStatus) -> str:
    """Return the progress of the atlas, its speed and the time left, in words."""
    progress, rate = making.progress, making.per_second
    what = say("patches of ") if progress.cutting else ""
    speed = say("{rate} a second", rate=number(rate)) if rate else ""
    left = (
        time_left(progress.done / progress.images, progress.done / rate)
        if rate and progress.done
        else ""
    )
    out = say("{count:,} left out", count=progress.left_out) if progress.left_out else ""
    done = say(
        "{stage}{done:,} of {images}",
        stage=what,
        done=progress.done,
        images=_images(progress.images),
    )
    return " · ".join(filter(None, (done, speed, left, out)))


def _images(count: int) -> str:
    return say_count("{count:,} image", "{count:,} images", count)

"""Choose the atlas that is shown of a model: the session's own, or one that everybody sees."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import streamlit as st

from hookviz.atlas.atlas import Atlas, AtlasImage
from hookviz.atlas.reading import atlas_of
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


_EVERY = 1.0  # seconds
_UPLOADER = "own-atlas-files"
_OPEN = "_choose-atlas"  # a key of session_state that no widget has can't be set from outside
_MOST_NAMED = 8  # images that were left out


@dataclass(frozen=True, slots=True)
class _Atlases:
    """The atlases there are of a network, without the model: Streamlit keeps it.

    Attributes:
        choice: the network.
        digest: of it.
        own: how many images the session's atlas has; None where there is none.
        others: how many the other one has; None where there is none.
        shows_own: whether the session's is shown.
        left_out: why images are not in the session's, by their names.
    """

    choice: ModelChoice = field(repr=False)
    digest: str
    own: int | None
    others: int | None
    shows_own: bool
    left_out: dict[str, str] = field(repr=False)


def open_atlases() -> None:
    """Have the next run of the page open the choice, in a callback."""
    st.session_state[_OPEN] = True


def show_atlases(model: Model, choice: ModelChoice) -> None:
    """Show how far an atlas of one's own is, and the choice of atlases where it was asked for."""
    own, others = own_atlas(model), atlas_of(model)
    atlases = _Atlases(
        choice,
        model.digest,
        None if own is None else own.counts["tallied"],
        None if others is None else others.counts["tallied"],
        own is not None and shown_atlas(model) is own,
        {} if own is None else dict(own.left_out),
    )
    state = _state(model.digest)
    if session_atlases().making is not None:
        st.fragment(_show_line, run_every=_EVERY if state.running else None)(atlases, state)
    if st.session_state.pop(_OPEN, False):
        st.dialog(say("Among which images"))(_choose)(atlases, state)


class _AtlasState(NamedTuple):
    """State of the session's atlas; where it changes, more of the page than the line does."""

    running: bool
    is_there: bool
    shows_own: bool


def _state(digest: str) -> _AtlasState:
    atlases = session_atlases()
    making = atlases.making
    running = making is not None and making.running
    return _AtlasState(running, atlases.atlas(digest) is not None, is_own_shown())


def _show_line(atlases: _Atlases, before: _AtlasState) -> None:
    """Draw the line of an atlas that is made; `before` is the state in which it was drawn first."""
    making = session_atlases().making
    if _state(atlases.digest) != before or making is None:
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="hv-excites"):
        if making.running:
            _show_running(making)
        else:
            _show_ended(atlases, making)


def _choose(atlases: _Atlases, before: _AtlasState) -> None:
    """Draw the choice; `before` is the state in which the page opened it."""
    if _state(atlases.digest) != before:
        st.rerun()
    _fill(atlases)


def _show_running(making: BuildStatus) -> None:
    """Show how far the atlas is, and a button to stop it."""
    st.caption(say("**Your atlas** {progress}", progress=_progress(making)), width="stretch")
    st.button(
        say("Stop"),
        icon=":material/stop:",
        type="tertiary",
        on_click=session_atlases().stop,
        key="hv-stop-atlas",
    )


def _fill(atlases: _Atlases) -> None:
    """Show which atlas is shown, and an uploader for another one."""
    if atlases.own is not None:
        _show_own(atlases)
    offer = st.container()  # over the files, which can be many
    files = st.file_uploader(
        say("An atlas of your own images"),
        resources.IMAGE_TYPES,
        accept_multiple_files=True,
        max_upload_size=settings().upload_mb,
        key=_UPLOADER,
        help=say("For each channel those that excite it most, of up to {limit} images", limit=MOST),
    )
    if files:
        listed = [(file.name, file.file_id) for file in files[:MOST]]
        with offer:
            _offer(say("Make it of {images}", images=_images(len(listed))), atlases, listed)
            if len(files) > MOST:
                st.caption(
                    say(
                        "These are {file_count}; the first {limit} count.",
                        file_count=len(files),
                        limit=MOST,
                    )
                )
        return
    before = files_before(atlases.digest)
    if before and atlases.own is None:
        with offer:
            _offer(
                say("Make it of the {images} from before", images=_images(len(before))),
                atlases,
                before,
            )
    st.caption(say("They stay in this session and go with it."))


def _offer(label: str, atlases: _Atlases, files: list[File]) -> None:
    st.button(
        label,
        on_click=make_own,
        args=(partial(resources.use_model, atlases.choice), atlases.digest, files),
        key="hv-make-atlas",
        type="primary",
    )


def _show_own(atlases: _Atlases) -> None:
    """Show which of two atlases is shown, and which images are not in the session's own."""
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
            on_change=lambda: show_own(st.session_state["own-or-others"] == own),
        )
    for name, reason in list(atlases.left_out.items())[:_MOST_NAMED]:
        said = reason if name in reason else f"{name}: {reason}"
        st.caption(plain(say("Left out: {reason}", reason=said)))
    if len(atlases.left_out) > _MOST_NAMED:
        st.caption(
            say(
                "And {count} more were left out.",
                count=len(atlases.left_out) - _MOST_NAMED,
            )
        )
    st.button(say("Drop it"), on_click=drop_own, args=(atlases.digest,), key="hv-drop-atlas")


def _show_ended(atlases: _Atlases, making: BuildStatus) -> None:
    """Say why the making ended, or where it was stopped, with a button to go on."""
    st.caption(
        plain(making.fault)
        if making.fault
        else say("Stopped: {progress}.", progress=_progress(making))
    )
    with st.container(horizontal=True):
        before = files_before(atlases.digest)
        if not making.fault:
            st.button(say("Go on"), on_click=session_atlases().go_on, key="hv-go-on-atlas")
        elif before:
            _offer(say("Make it again"), atlases, before)
        st.button(say("Drop it"), on_click=drop_own, args=(making.digest,), key="hv-drop-atlas")


def _progress(making: BuildStatus) -> str:
    """Return how far the atlas is, how fast it goes and how long it takes, in words."""
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

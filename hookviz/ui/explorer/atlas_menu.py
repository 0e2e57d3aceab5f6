"""Choose among which images the strongest are looked for, and make an atlas of one's own images.

The choice opens over the page. While an atlas is made a line over the explorer says how far it is,
drawn again each second by itself.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import streamlit as st

from hookviz.atlas.files import atlas_of
from hookviz.language.saying import say, say_count
from hookviz.serving.session_atlases import MOST, BuildStatus
from hookviz.settings import settings
from hookviz.types import Model
from hookviz.ui.explorer.atlas_choice import (
    File,
    drop_own,
    files_before,
    is_own_shown,
    make_own,
    own_atlas,
    session_atlases,
    show_own,
    shown_atlas,
)
from hookviz.ui.serving import resources
from hookviz.ui.state import ModelChoice, plain
from hookviz.wording import number, time_left

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

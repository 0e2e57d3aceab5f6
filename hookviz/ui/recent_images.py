"""Keep the last images that a person gave in this session, to go back to.

They go when it ends; the same browser has them back where it loads its page again within minutes.
What is kept is the file as it came and a small picture of it. It is decoded again when it is
chosen, for pixels take many times the room.
"""

import secrets
from dataclasses import dataclass

import streamlit as st

from hookviz.errors import ImageError
from hookviz.images.choices import page_count
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.serving.kept_photographs import OwnFile, kept_photographs
from hookviz.types import InputImage
from hookviz.ui.components.pictures import Thumbnail, thumbnail
from hookviz.ui.serving import resources
from hookviz.ui.serving.queue_wait import session
from hookviz.ui.state import choose, choose_upload
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME, browser_key

MOST = 6
"""How many images are kept."""

MOST_BYTES = 32 * MEGABYTE
"""How many bytes their files have together; the last one is kept whatever its size."""

# Keys of session_state that no widget has can't be set from outside.
_KEY, _BROUGHT, _PAGES = "_recent", "_brought", "_pages"


@dataclass(frozen=True, slots=True)
class RecentImage:
    """A file that was uploaded or a photograph that was taken.

    Attributes:
        thumbnail: what stands in the row; its name is made up and says nothing about the image.
        data: the file.
        digest: of its pixels, by which the same image is known again.
    """

    thumbnail: Thumbnail
    data: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class PendingImage:
    """A file that a click leads to, which is not among the recent images yet.

    Attributes:
        name: what it is called.
        data: the file.
        digest: that its pixels should have.
        upload: its name in the link.
    """

    name: str
    data: bytes
    digest: str
    upload: str


def queue_for_next_run(name: str, data: bytes, digest: str) -> None:
    """Have the next run of the page look at a file, in a callback; the link says so at once."""
    known = next((each.thumbnail.name for each in recent_images() if each.digest == digest), None)
    upload = known or new_name()
    st.session_state[_BROUGHT] = PendingImage(name, data, digest, upload)
    choose(image="Upload", upload=upload)


def take_brought() -> PendingImage | None:
    """Return the file that was brought last, once."""
    brought: PendingImage | None = st.session_state.pop(_BROUGHT, None)
    return brought


def recent_images() -> tuple[RecentImage, ...]:
    """Return the images that are kept, the newest first."""
    kept: tuple[RecentImage, ...] = st.session_state.get(_KEY, ())
    return kept


def find_recent(name: str | None) -> RecentImage | None:
    """Return the image of that name in a link; None where it is nobody's, or another person's.

    One that this browser gave before its page was loaded again is a recent one from now on.

    Raises:
        ImageError: it can't be read.
    """
    found = next((each for each in recent_images() if each.thumbnail.name == name), None)
    if found is not None or not name:
        return found
    kept = kept_photographs().find(_person(), name)
    if kept is None:
        return None
    with st.spinner(say("Reading the image…")):
        remember(name, kept.data, resources.decode(kept.data, kept.title, name))
    return recent_images()[0]


def read_recent(recent: RecentImage) -> InputImage:
    """Decode a recent image, and of several pages the one that is chosen.

    Raises:
        ImageError: it can't be read.
    """
    name = recent.thumbnail.name
    page = st.session_state.get(_PAGES, {}).get(name)
    return resources.decode(recent.data, recent.thumbnail.title, name, page)


def pick_page(recent: RecentImage) -> None:
    """Show the choice of a page where the file has several; it is kept for the session."""
    pages = page_count(recent.data)
    if pages == 1:
        return
    name, chosen = recent.thumbnail.name, st.session_state.setdefault(_PAGES, {})
    label = say("Page, of {count:,}", count=pages)
    chosen[name] = st.number_input(label, 1, pages, chosen.get(name, 1), key=f"page-{name}")


def hold_for_reload() -> None:
    """Have this browser find the recent images again where its page is loaded anew."""
    files = [
        OwnFile(each.thumbnail.name, each.thumbnail.title, each.data) for each in recent_images()
    ]
    kept_photographs().hold(session(), _person(), files)


def _person() -> str:
    """Return what stands for this browser, and for who has logged in there; else an empty text."""
    browser = browser_key(st.context.cookies.get(XSRF_COOKIE_NAME, ""))
    who = [st.user.get(claim) for claim in ("iss", "sub", "email")]
    return f"{browser} {who}" if browser else ""


def new_name() -> str:
    """Return a name by which a link can have an image of the session's own."""
    return secrets.token_hex(4)


def keep_and_select(title: str, data: bytes, digest: str = "", name: str = "") -> str:
    """Keep a file among the recent images and look at it; return the name it is kept under.

    Args:
        title: what it is called.
        data: the file.
        digest: that its pixels have to have; empty for any.
        name: to keep it under; empty for a new one.

    Raises:
        ImageError: it can't be read, or is another picture.
    """
    name = name or new_name()
    image = resources.decode(data, title, name)
    if digest not in ("", image.digest):
        raise ImageError(
            say("{title} is another picture than when its atlas was made.", title=title)
        )
    name = remember(name, data, image)
    choose_upload(name)
    return name


def remember(name: str, data: bytes, image: InputImage) -> str:
    """Keep an image, and drop the oldest where they become too many.

    Returns:
        The name that it is kept under: the one that it had where it is known already.
    """
    before = recent_images()
    same = [kept for kept in before if kept.digest == image.digest]
    name = same[0].thumbnail.name if same else name
    small = thumbnail(image.pixels)
    newest = RecentImage(Thumbnail(name, image.name, small), data, image.digest)
    kept = [newest]
    size = len(data)
    for older in [each for each in before if each not in same][: MOST - 1]:
        size += len(older.data)
        if size > MOST_BYTES:
            break
        kept.append(older)
    st.session_state[_KEY] = tuple(kept)
    return name

"""Keep the session's last images, to choose them again.

They end with the session; a browser that reloads its page within minutes gets them back. An image
is kept as its file and a thumbnail, and decoded when it is chosen: pixels take many times the room.
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
from hookviz.ui.state import choose_upload, open_upload
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME, browser_key

MOST = 6
"""Images that are kept, at most."""

MOST_BYTES = 32 * MEGABYTE
"""Bytes of their files together, at most; the newest is kept at any size."""

# No widget has these keys, so no link can set them.
_KEY, _PENDING, _PAGES = "_recent", "_brought", "_pages"


@dataclass(frozen=True, slots=True)
class RecentImage:
    """An uploaded file or a photograph.

    Attributes:
        thumbnail: in the row of images; its name is random.
        data: the file.
        digest: of the pixels, which identifies the image.
    """

    thumbnail: Thumbnail
    data: bytes
    digest: str


@dataclass(frozen=True, slots=True)
class PendingImage:
    """A file to which a click leads, before it is a recent image.

    Attributes:
        name: of the file.
        data: the file.
        digest: that its pixels must have.
        upload: its name in the link.
    """

    name: str
    data: bytes
    digest: str
    upload: str


def queue_for_next_run(name: str, data: bytes, digest: str) -> None:
    """Open a file in the next run of the page, in a callback; the link names it at once."""
    known = next((each.thumbnail.name for each in recent_images() if each.digest == digest), None)
    upload = known or new_name()
    st.session_state[_PENDING] = PendingImage(name, data, digest, upload)
    open_upload(upload)


def pop_pending() -> PendingImage | None:
    """Return the file of the last `queue_for_next_run`, once."""
    pending: PendingImage | None = st.session_state.pop(_PENDING, None)
    return pending


def recent_images() -> tuple[RecentImage, ...]:
    """Return the recent images, the newest first."""
    images: tuple[RecentImage, ...] = st.session_state.get(_KEY, ())
    return images


def find_recent(name: str | None) -> RecentImage | None:
    """Return this person's image by its name in a link; None without one.

    An image from before a reload of the page becomes a recent image again.

    Raises:
        ImageError: it can't be read.
    """
    recent = next((each for each in recent_images() if each.thumbnail.name == name), None)
    if recent is not None or not name:
        return recent
    saved = kept_photographs().find(_person(), name)
    if saved is None:
        return None
    with st.spinner(say("Reading the image…")):
        remember(name, saved.data, resources.decode(saved.data, saved.title, name))
    return recent_images()[0]


def read_recent(recent: RecentImage) -> InputImage:
    """Decode a recent image, or the chosen page of one.

    Raises:
        ImageError: it can't be read.
    """
    name = recent.thumbnail.name
    page = st.session_state.get(_PAGES, {}).get(name)
    return resources.decode(recent.data, recent.thumbnail.title, name, page)


def pick_page(recent: RecentImage) -> None:
    """Show the choice of a page if the file has several; the session remembers it."""
    pages = page_count(recent.data)
    if pages == 1:
        return
    name, chosen = recent.thumbnail.name, st.session_state.setdefault(_PAGES, {})
    label = say("Page, of {count:,}", count=pages)
    chosen[name] = st.number_input(label, 1, pages, chosen.get(name, 1), key=f"page-{name}")


def save_for_reload() -> None:
    """Save the recent images for this browser's next load of the page."""
    files = [
        OwnFile(each.thumbnail.name, each.thumbnail.title, each.data) for each in recent_images()
    ]
    kept_photographs().hold(session(), _person(), files)


def _person() -> str:
    """Return a key of this browser and its login, or an empty string."""
    browser = browser_key(st.context.cookies.get(XSRF_COOKIE_NAME, ""))
    who = [st.user.get(claim) for claim in ("iss", "sub", "email")]
    return f"{browser} {who}" if browser else ""


def new_name() -> str:
    """Return a random name for an image of the session's own in a link."""
    return secrets.token_hex(4)


def keep_and_select(title: str, data: bytes, digest: str = "", name: str = "") -> str:
    """Add a file to the recent images and choose it; return its name in the link.

    Args:
        title: of the file.
        data: the file.
        digest: that its pixels must have; empty for any.
        name: in the link; empty for a new one.

    Raises:
        ImageError: it can't be read, or has other pixels.
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
    """Add an image to the recent ones, and drop the oldest beyond `MOST` and `MOST_BYTES`.

    Returns:
        The image's name in the link: the former one if the image was there already.
    """
    before = recent_images()
    same = [each for each in before if each.digest == image.digest]
    name = same[0].thumbnail.name if same else name
    small = thumbnail(image.pixels)
    images = [RecentImage(Thumbnail(name, image.name, small), data, image.digest)]
    size = len(data)
    for older in [each for each in before if each not in same][: MOST - 1]:
        size += len(older.data)
        if size > MOST_BYTES:
            break
        images.append(older)
    st.session_state[_KEY] = tuple(images)
    return name

"""Keep what a teacher shares of a live camera: that there is one, and the newest frame of it.

A frame is what the teacher's page has drawn: small JPEGs, packed as the answers of a stream are
(`hookviz.live.stream.packed`). It is in memory alone, one a class, until the next one comes or the
teacher stops. Nothing of it is decoded here but its header.
"""

import struct
import threading
import time
from collections.abc import Callable
from io import BytesIO
from typing import Any, NamedTuple

from PIL.JpegImagePlugin import JpegImageFile

from hookviz import shallow_json
from hookviz.errors import ClassroomError
from hookviz.language.saying import say

MOST_BYTES = 60_000
"""Most bytes of a frame: forty pupils who get one a second take 2.4 MB a second of the line."""

PRIVATE, SHARED = "private", "shared"
"""What a class is told of a teacher's camera: that there is one, or that it is seen."""

_MOST_FACTS = 2_000  # bytes of the text
_MOST_PICTURES = 2  # what the camera sees, and the tiles
_MOST_PIXELS = 2_000_000  # of each, which a pupil's browser unpacks
_PAUSE = 0.5  # seconds between two frames; the page sends one a second


class LiveFrame(NamedTuple):
    """Frame as it goes to those who follow, and its number."""

    number: int
    data: bytes


class LiveShare:
    """What a class sees of its teacher's camera; for any thread."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Begin without a camera."""
        self._now = now
        self._lock = threading.Lock()
        self._kind: str | None = None
        self._frame: LiveFrame | None = None
        self._count, self._last = 0, float("-inf")

    @property
    def kind(self) -> str | None:
        """`PRIVATE` or `SHARED`; None where the teacher looks at no camera."""
        return self._kind

    @property
    def frame(self) -> LiveFrame | None:
        """Newest frame, where it is shared."""
        return self._frame

    def take(self, told: str | bytes | None) -> bool:
        """Take the kind, or a frame in bytes, and return whether there is something new to see.

        Where the camera is not shared any more nothing of it is kept. A frame that comes too soon
        after another is passed over, and so is one of a camera that is not shared.

        Raises:
            ClassroomError: it is no frame, or too large.
        """
        return self._put(told) if isinstance(told, bytes) else self._tell(told)

    def _tell(self, kind: str | None) -> bool:
        with self._lock:
            known = kind if kind in (PRIVATE, SHARED) else None
            changed, self._kind = known != self._kind, known
            if known != SHARED:
                self._frame = None
            return changed

    def _put(self, data: bytes) -> bool:
        check_frame(data)
        with self._lock:
            now = self._now()
            if self._kind != SHARED or now - self._last < _PAUSE:
                return False
            self._count, self._last = self._count + 1, now
            self._frame = LiveFrame(self._count, data)
            return True


def check_frame(data: bytes) -> None:
    """Check that a frame is what a page makes of it: a short text, and one or two small JPEGs.

    Raises:
        ClassroomError: it is not, or it is too large.
    """
    if len(data) > MOST_BYTES:
        raise ClassroomError(
            say(
                "A frame for a class has up to {limit:,} bytes; this one has {count:,}.",
                limit=MOST_BYTES,
                count=len(data),
            )
        )
    (length,) = struct.unpack("<I", data[:4].ljust(4, b"\0"))
    blobs = _lengths(data[4 : 4 + length]) if length <= _MOST_FACTS else []
    start, is_whole = 4 + length, bool(blobs)
    for size in blobs:
        is_whole = is_whole and _is_small_jpeg(data[start : start + size])
        start += size
    if not is_whole or start != len(data):
        raise ClassroomError(say("This is no frame that a class can be shown."))


def _lengths(text: bytes) -> list[int]:
    try:
        facts: Any = shallow_json.parse(text)
    except ValueError:
        return []
    blobs = facts.get("blobs") if isinstance(facts, dict) else None
    if not isinstance(blobs, list) or not 1 <= len(blobs) <= _MOST_PICTURES:
        return []
    return blobs if all(type(size) is int and size > 0 for size in blobs) else []


def _is_small_jpeg(data: bytes) -> bool:
    try:
        width, height = JpegImageFile(BytesIO(data)).size
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it is no JPEG
        return False
    return bool(width * height <= _MOST_PIXELS)

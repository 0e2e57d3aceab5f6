import json
import struct

import pytest

from hookviz.classroom.live_frame import MOST_BYTES, PRIVATE, SHARED, LiveShare, check_frame
from hookviz.errors import ClassroomError
from tests.pictures import encoded, picture


def jpeg(width: int = 160, height: int = 120) -> bytes:
    return encoded(picture(1, width, height), "JPEG", quality=60)


def framed(*pictures: bytes, **facts: object) -> bytes:
    text = json.dumps({"blobs": list(map(len, pictures)), **facts}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(pictures)


def kept(share: LiveShare) -> tuple[int, bytes] | None:
    return share.frame


def test_the_newest_frame_of_a_shared_camera_alone_is_kept() -> None:
    clock = [10.0]
    share = LiveShare(lambda: clock[0])
    assert not share.take(framed(jpeg()))  # nobody said that it is shared
    assert share.take(PRIVATE)
    assert not share.take(framed(jpeg()))
    assert kept(share) is None
    assert share.take(SHARED)
    assert not share.take(SHARED)
    first, second = framed(jpeg(), layer="one"), framed(jpeg(), jpeg(), layer="two")
    assert share.take(first)
    assert not share.take(second)  # at once after it
    assert kept(share) == (1, first)
    clock[0] += 1
    assert share.take(second)
    assert kept(share) == (2, second)
    assert share.take(PRIVATE)
    assert kept(share) is None
    assert share.take("what nobody knows")
    assert share.kind is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        framed(),
        framed(jpeg(), jpeg(), jpeg()),
        framed(jpeg()) + b"more",
        framed(jpeg())[:-1],
        framed(encoded(picture(1), "PNG")),
        framed(jpeg(), b"<svg onload=alert(1)>"),
        framed(jpeg(2048, 1024)),
        framed(jpeg(), words="x" * 3000),
        framed(jpeg(), blobs=[True]),
        framed(jpeg(), blobs="1"),
        struct.pack("<I", 1500) + b"[" * 1500,
    ],
)
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(ClassroomError, match="no frame that a class can be shown"):
        check_frame(data)


def test_a_frame_has_a_bound_that_is_said() -> None:
    with pytest.raises(ClassroomError, match="up to 60,000 bytes; this one has 60,001"):
        check_frame(b"\0" * (MOST_BYTES + 1))

"""How many frames a file has, against Pillow's own count."""

from io import BytesIO

import pytest
from PIL import Image

from hookviz.images.animations import frame_count
from hookviz.images.reading import decode
from tests.images.test_decoding import animation
from tests.images.test_reading import encoded


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_frames_are_counted_as_pillow_counts_them(kind: str, count: int) -> None:
    data = animation(kind, [30 * number for number in range(count)])
    with Image.open(BytesIO(data)) as image:
        assert frame_count(data) == getattr(image, "n_frames", 1) == count
    assert bool(decode(data).animation) == (count > 1)


def test_a_gif_s_frames_with_colours_and_comments_of_their_own_are_counted() -> None:
    frames = [Image.effect_noise((20, 20), 90).convert("P") for _ in range(3)]
    for number, frame in enumerate(frames):
        frame.putpalette([number * 40, 9, 9] * 256)
    options = {"save_all": True, "append_images": frames[1:], "comment": b"," * 300}
    assert frame_count(encoded(frames[0].convert("RGB"), "GIF", **options)) == 3


def test_a_frame_beyond_the_picture_makes_no_animation() -> None:
    data = bytearray(animation("GIF", [0, 200]))
    place = data.rindex(b"\x2c\0\0\0\0") + 5  # the second frame's width and height
    data[place : place + 4] = b"\xff\xff\xff\xff"
    assert decode(bytes(data)).animation == b""
    assert decode(animation("GIF", [0, 200])).animation


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF", "TIFF"])
def test_pages_and_broken_files_are_one_picture(kind: str) -> None:
    data = animation(kind)
    for length in (0, 5, 11, 20, 60):
        assert frame_count(data[:length]) == 1
    assert frame_count(animation("TIFF")) == 1

"""Behind the wall a picture is what it is here, and a hostile one is a sentence for its sender."""

import resource
import sys
import time
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hookviz.errors import ImageError
from hookviz.images import reading
from hookviz.images.choices import Choices
from hookviz.reader import wall
from tests import hostile_pictures
from tests.images.test_decoding import LEVELS, animation
from tests.images.test_reading import WHOLE_FILES

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")
MEGABYTE = 2**20


@pytest.fixture(scope="module")
def up() -> Iterator[None]:
    wall.put_up()
    assert wall.is_up()
    yield
    wall.take_down()


@pytest.mark.parametrize("kind", WHOLE_FILES)
def test_every_kind_is_decoded_to_the_same_pixels(up: None, kind: str) -> None:
    data = WHOLE_FILES[kind]
    here, behind = reading.decode_here(data, "a.img"), reading.decode(data, "a.img")
    assert np.array_equal(here.pixels, behind.pixels)
    assert here.digest == behind.digest
    assert not behind.pixels.flags.writeable


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF"])
def test_frames_are_those_of_here(up: None, kind: str) -> None:
    data = animation(kind)
    image = reading.decode(data, "moving")
    assert image.animation == data
    levels = [int(frame.pixels[12, 12, 0]) for frame in reading.decode_frames(image, 3)]
    assert np.abs(np.array(levels) - [LEVELS[1], LEVELS[3], LEVELS[5]]).max() <= 3


def test_a_large_one_is_told_apart_first_and_decoded_whole(up: None) -> None:
    pixels = np.arange(1200 * 1300 * 3, dtype=np.uint32).astype(np.uint8).reshape(1200, 1300, 3)
    buffer = BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    assert reading.pixel_count(buffer.getvalue()) == 1200 * 1300
    assert np.array_equal(reading.decode(buffer.getvalue()).pixels, pixels)
    with pytest.raises(ImageError, match="frame"):  # here it would take minutes
        reading.decode_small_file(hostile_pictures.endless_profile(), "frame")


@pytest.mark.parametrize("kind", hostile_pictures.pictures())
def test_a_hostile_one_costs_this_process_nothing(up: None, kind: str) -> None:
    data = hostile_pictures.pictures()[kind]
    begun, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        image = reading.decode(data, "a.img")
    except ImageError as error:
        assert "'a.img'" in str(error)  # noqa: PT017 - some are read in the end
    else:
        assert image.pixels.ndim == 3
    assert time.process_time() - begun < 1.5
    more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert more * 1024 < 2 * len(data) + 400 * MEGABYTE


def test_choices_and_the_note_go_through(up: None) -> None:
    deep = np.random.default_rng(1).integers(900, 1100, (60, 80)).astype(np.uint16)
    pages = [Image.fromarray(page) for page in (deep, deep[::-1].copy())]
    buffer = BytesIO()
    pages[0].save(buffer, "TIFF", save_all=True, append_images=pages[1:])
    data = buffer.getvalue()
    for choices in (Choices(), Choices(page=2), Choices(window=(1000.0, 50.0), page=2)):
        here = reading.decode_here(data, "a.tif", choices=choices)
        behind = reading.decode(data, "a.tif", choices=choices)
        assert np.array_equal(here.pixels, behind.pixels)
        assert here.note == behind.note != ""
    with pytest.raises(ImageError, match=r"'a\.tif' has no page 3"):
        reading.decode(data, "a.tif", choices=Choices(page=3))

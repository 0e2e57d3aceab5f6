import pytest
from PIL import Image

from hookviz.errors import ImageError
from hookviz.images import formats, reading
from hookviz.language.speaking import speaking
from tests.pictures import encoded, picture


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"just some text", "is no image"),
        (b"%PDF-1.7 ...", "a PDF document"),
        (b'<?xml version="1.0"?><svg/>', "an SVG drawing"),
        (b"\x89PNG\r\n\x1a\n", "truncated, damaged"),
        (b"BM", "truncated, damaged"),
        (encoded(picture(), "JPEG2000"), "a JPEG 2000 image"),
        (encoded(picture(), "PPM"), "is no image"),
    ],
)
def test_what_is_no_image_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ImageError, match=reason) as caught:
        reading.decode(data, "holiday.xyz")
    assert "'holiday.xyz'" in str(caught.value)
    assert "PNG, JPEG" in str(caught.value)
    with speaking("zh_CN"), pytest.raises(ImageError, match=r"'a\.pdf' 是 PDF 文档；"):
        reading.decode(b"%PDF-1.7 ...", "a.pdf")


def test_files_that_folders_are_searched_for_are_of_formats_that_are_read() -> None:
    named = Image.registered_extensions()
    kinds = {named[suffix] for suffix in formats.SUFFIXES}
    assert kinds == {"PNG", "JPEG", "WEBP", "GIF", "BMP", "DIB", "TIFF", "AVIF"}

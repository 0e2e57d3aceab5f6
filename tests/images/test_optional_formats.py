"""TIFFs of many bands, DICOM and HEIC: read where a package is there, else named."""

import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.images import reading
from hookviz.reader import wall
from hookviz.settings import Settings

Array = NDArray[Any]
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(200)
DICOM = bytes(128) + b"DICM" + bytes(200)


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="a wall is of Linux")


@pytest.fixture(params=[False, pytest.param(True, marks=ON_LINUX)])
def behind(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the wall is up."""
    if request.param:
        wall.put_up()
    yield request.param
    if request.param:
        wall.take_down()


def of_bands(values: Array, planes: str, **options: Any) -> bytes:
    tifffile = pytest.importorskip("tifffile")
    buffer = BytesIO()
    stored = values if planes == "contig" else values.transpose(2, 0, 1)
    options = {"photometric": "minisblack", "planarconfig": planes} | options
    tifffile.imwrite(buffer, stored, **options)
    return buffer.getvalue()


def stretched(values: Array) -> Array:
    low, high = np.percentile(values.astype(float), (0.5, 99.5))
    levels: Array = np.rint((values.astype(float) - low).clip(0, high - low) / (high - low) * 255)
    return levels


@pytest.mark.parametrize("count", [5, 6, 13])
@pytest.mark.parametrize("planes", ["contig", "separate"])
def test_three_of_many_bands_are_shown(behind: bool, planes: str, count: int) -> None:
    values = np.random.default_rng(1).integers(0, 256, (30, 40, count), dtype=np.uint8)
    data = of_bands(values, planes, compression="deflate")
    image = hookviz.read_image(data)
    np.testing.assert_array_equal(image.pixels, values[..., :3])
    assert image.note.startswith(f"Bands 1, 2, 3 of {count} as red, green and blue;")
    chosen = hookviz.read_image(data, bands=(5, 3, 1))
    np.testing.assert_array_equal(chosen.pixels, values[..., [4, 2, 0]])
    with pytest.raises(hookviz.ImageError, match=f"no band 14: it has {count}, counted from 1"):
        hookviz.read_image(data, bands=(14, 1, 1))
    image = hookviz.read_image(of_bands(values[..., :2], "separate"))
    np.testing.assert_array_equal(image.pixels, values[..., [0, 0, 0]])
    assert image.note.startswith("Bands 1, 1, 1 of 2")


@pytest.mark.parametrize("kind", ["u2", "i2", "f4", "f8"])
def test_deep_bands_are_shown_in_one_window(behind: bool, kind: str) -> None:
    values = np.random.default_rng(1).integers(0, 9000, (30, 40, 6)).astype(kind)
    data = of_bands(values, "contig")
    image = hookviz.read_image(data, bands=(3, 2, 1))
    np.testing.assert_array_equal(image.pixels, stretched(values[..., [2, 1, 0]]))
    assert "Greys in a window" in image.note
    shown = hookviz.read_image(data, window=(1000, 500))
    assert "window" not in shown.note
    expected = ((values[..., :3].astype(float) - 750).clip(0, 500) / 500) * 255
    np.testing.assert_array_equal(shown.pixels, np.rint(expected))


def test_bands_of_a_colour_image_can_be_chosen_and_many_are_bounded_by_the_pixels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(1).integers(0, 256, (30, 40, 4), dtype=np.uint8)
    data = of_bands(values, "contig", photometric="rgb", extrasamples=["unspecified"])
    np.testing.assert_array_equal(
        hookviz.read_image(data, bands=(4, 1, 2)).pixels, values[..., [3, 0, 1]]
    )
    with pytest.raises(hookviz.ImageError, match="is no TIFF, of which alone bands"):
        hookviz.read_image("assets/samples/cat.jpg", bands=(3, 2, 1))
    many = of_bands(np.zeros((30, 40, 6), np.uint8), "contig")
    monkeypatch.setattr(reading, "settings", lambda: Settings(max_pixels=1000))
    with pytest.raises(hookviz.ImageError, match="HOOKVIZ_MAX_PIXELS"):
        hookviz.read_image(many)


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("hookviz.images.optional_formats.find_spec", lambda _: None)
    monkeypatch.setattr("hookviz.images.formats.find_spec", lambda _: None)


def test_where_nothing_reads_many_bands_their_number_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "bands.tif"  # a file is read here, and not behind a wall that may be up
    file.write_bytes(of_bands(np.zeros((30, 40, 6), np.uint16), "contig"))
    without(monkeypatch, "tifffile")
    with pytest.raises(
        hookviz.ImageError,
        match=r"a TIFF of 6 bands of 16 bits.*hookviz\[tiff\].*bands=\(3, 2, 1\)",
    ):
        hookviz.read_image(file)


@pytest.mark.parametrize(
    ("data", "package", "said"),
    [
        (HEIC, "pillow_heif", r"a HEIC photo.*pip install \"hookviz\[heic\]\".*or save it as PNG"),
        (DICOM, "pydicom", r"a DICOM image.*pip install \"hookviz\[medical\]\""),
    ],
)
def test_a_format_whose_package_is_not_there_is_named(
    behind: bool, data: bytes, package: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, package)
    with pytest.raises(hookviz.ImageError, match=said):
        reading.decode(data, "odd")


def dicom(values: Array, kind: str = "MONOCHROME2", **tags: Any) -> bytes:
    pydicom = pytest.importorskip("pydicom")
    meta = pydicom.dataset.FileMetaDataset()
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
    meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
    file = pydicom.dataset.FileDataset("", {}, file_meta=meta, preamble=bytes(128))
    file.Rows, file.Columns = values.shape[-2:]
    file.SamplesPerPixel, file.PhotometricInterpretation = 1, kind
    file.BitsAllocated, file.BitsStored, file.HighBit, file.PixelRepresentation = 16, 16, 15, 1
    if values.ndim == 3:
        file.NumberOfFrames = len(values)
    file.PixelData = values.astype("<i2").tobytes()
    for name, value in tags.items():
        setattr(file, name, value)
    buffer = BytesIO()
    file.save_as(buffer, enforce_file_format=True)
    return buffer.getvalue()


SCAN = np.random.default_rng(2).integers(-1000, 3000, (60, 70))


def test_dicom_is_shown_in_the_window_that_it_states(tmp_path: Path) -> None:
    tags: dict[str, Any] = {"RescaleSlope": 2, "RescaleIntercept": -24}
    data = dicom(SCAN, WindowCenter=[40, 600], WindowWidth=[400, 1500], **tags)
    (tmp_path / "ct.dcm").write_bytes(data)
    image = hookviz.read_image(tmp_path / "ct.dcm")
    units = SCAN * 2.0 - 24
    expected = ((units - 39.5) / 399 + 0.5).clip(0, 1) * 255  # PS3.3, C.11.2.1.2.1
    np.testing.assert_array_equal(image.pixels[..., 0], np.rint(expected))
    assert "that the file states, level 40 and width 400" in image.note
    inverted = hookviz.read_image(
        dicom(SCAN, "MONOCHROME1", WindowCenter=40, WindowWidth=400, **tags)
    )
    np.testing.assert_array_equal(inverted.pixels, 255 - image.pixels)
    chosen = hookviz.read_image(data, window=(100, 1000))
    np.testing.assert_array_equal(
        chosen.pixels[..., 0], np.rint((units + 400).clip(0, 1000) / 1000 * 255)
    )
    image = hookviz.read_image(dicom(np.stack([SCAN, SCAN[::-1]])), page=2)  # a frame is a page
    np.testing.assert_array_equal(image.pixels[..., 0], stretched(SCAN[::-1]))
    assert image.note.startswith("Page 2 of 2;")
    if sys.platform == "linux":  # those of strangers are refused
        wall.put_up()
        try:
            with pytest.raises(hookviz.ImageError, match="reads by its path alone"):
                reading.decode(data, "ct.dcm")
        finally:
            wall.take_down()


def test_heic_is_read(tmp_path: Path) -> None:
    heif = pytest.importorskip("pillow_heif")
    with Image.open("assets/samples/cat.jpg") as picture:
        heif.from_pillow(picture).save(tmp_path / "cat.heic", quality=90)
        pixels = hookviz.read_image(tmp_path / "cat.heic").pixels
        assert np.abs(pixels.astype(int) - np.asarray(picture)).mean() < 2

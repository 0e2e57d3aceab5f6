"""Clips of a network for video, and how many frames a file has, against Pillow's own count."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import hookviz
from hookviz.errors import ImageError
from hookviz.images import reading
from hookviz.images.decoding import frame_count
from hookviz.images.reading import decode, decode_frames
from hookviz.settings import Settings
from hookviz.types import Preprocess
from tests.images.test_reading import LOSSLESS, encoded

LEVELS = [0, 40, 80, 120, 160, 200]  # of each frame's grey


def animation(kind: str, levels: list[int] = LEVELS, side: int = 24) -> bytes:
    first, *others = (Image.new("RGB", (side, side), (level,) * 3) for level in levels)
    options: dict[str, Any] = LOSSLESS.get(kind, {"quality": 100} if kind == "AVIF" else {})
    return encoded(first, kind, save_all=True, append_images=others, **options)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF"])
def test_frames_are_taken_in_even_steps(kind: str) -> None:
    frames = decode_frames(decode(animation(kind), "moving"), 3)
    seen = [int(frame.pixels[12, 12, 0]) for frame in frames]
    assert np.abs(np.array(seen) - [LEVELS[1], LEVELS[3], LEVELS[5]]).max() <= 3
    assert len({frame.digest for frame in frames}) == 3
    moving = [Image.new("RGB", (8, 8), "black") for _ in range(4)]
    for at, frame in enumerate(moving):
        frame.paste((255, 0, 0), (2 * at, 0, 2 * at + 2, 8))
    data = encoded(moving[0], "GIF", save_all=True, append_images=moving[1:])
    for shown, expected in zip(decode_frames(decode(data), 4), moving, strict=True):
        np.testing.assert_array_equal(shown.pixels, np.asarray(expected))  # what is drawn over goes


def test_few_frames_are_taken_again_and_pages_are_no_moments() -> None:
    few = decode_frames(decode(animation("PNG", [0, 200])), 4)
    assert [int(frame.pixels[0, 0, 0]) for frame in few] == [0, 0, 200, 200]
    pages = decode(animation("TIFF"))
    assert pages.animation == b""
    assert decode_frames(pages, 4) == (pages,)
    data = animation("PNG")
    image = decode(data, "half")
    short = hookviz.InputImage(image.pixels, "half", "", data[: len(data) * 2 // 3])
    with pytest.raises(ImageError, match="half"):
        decode_frames(short, 6)


@pytest.fixture(scope="module")
def video() -> hookviz.Model:
    torch.manual_seed(0)
    layers = (nn.Conv3d(3, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten())
    network = nn.Sequential(*layers, nn.Linear(4, 5))
    return hookviz.wrap(network, Preprocess(20, 16, frames=6))


def test_a_still_image_is_every_frame(video: hookviz.Model) -> None:
    clip = hookviz.prepare_input(video, "assets/samples/cat.jpg")
    still = hookviz.wrap(nn.Conv2d(3, 1, 1), Preprocess(20, 16))
    alone = hookviz.prepare_input(still, "assets/samples/cat.jpg")
    assert clip.tensor.shape == (1, 3, 6, 16, 16)
    for frame in clip.tensor[0].unbind(1):
        assert torch.equal(frame, alone.tensor[0])
    assert clip.picture is not None
    assert alone.picture is not None
    np.testing.assert_array_equal(clip.picture, alone.picture)
    assert (clip.crop, clip.frames) == (alone.crop, ())


def test_an_animation_is_as_many_frames_as_the_network_takes(video: hookviz.Model) -> None:
    data = animation("PNG")
    clip = hookviz.prepare_input(video, data)
    mean, std = (torch.tensor(each) for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    for frame, level in zip(clip.tensor[0].unbind(1), LEVELS, strict=True):
        torch.testing.assert_close(frame[:, 8, 8], (level / 255 - mean) / std)
    assert [int(picture[0, 0, 0]) for picture in clip.frames] == LEVELS
    assert clip.picture is clip.frames[3]
    with Image.open(BytesIO(data)) as first:
        alone = hookviz.prepare_input(video, first.convert("RGB"))
    assert alone.frames == ()
    assert alone.digest != clip.digest
    whole = hookviz.prepare_input(video, data, size=32, whole=True)
    assert whole.tensor.shape == (1, 3, 6, 32, 32)


def test_what_is_recorded_of_a_clip_is_what_the_network_computes(video: hookviz.Model) -> None:
    cap = hookviz.capture(video, animation("GIF"))
    with torch.no_grad():
        seen = video.network.get_submodule("0")(
            hookviz.prepare_input(video, animation("GIF")).tensor
        )
    assert torch.equal(cap["0"].values, seen[0])
    assert cap["0"].values.shape == (4, 6, 16, 16)
    layer = hookviz.list_layers(video)[0]
    assert layer.input_shape == (3, 6, 16, 16)
    assert hookviz.prepare_input(video, torch.rand(3, 6, 16, 16)).tensor.shape == (1, 3, 6, 16, 16)
    with pytest.raises(ImageError, match=r"\(C, T, H, W\)"):
        hookviz.prepare_input(video, torch.rand(3, 16))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "AVIF"])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_frames_are_counted_as_pillow_counts_them(kind: str, count: int) -> None:
    data = animation(kind, [30 * number for number in range(count)])
    with Image.open(BytesIO(data)) as image:
        assert frame_count(data) == getattr(image, "n_frames", 1) == count
    assert bool(decode(data).animation) == (count > 1)
    for part in (*(data[:length] for length in (0, 5, 11, 20, 60)), animation("TIFF")):
        assert frame_count(part) == 1  # of pages and broken files


def test_a_frame_beyond_the_picture_makes_no_animation() -> None:
    frames = [Image.effect_noise((20, 20), 90).convert("P") for _ in range(3)]
    for number, frame in enumerate(frames):
        frame.putpalette([number * 40, 9, 9] * 256)
    options = {"save_all": True, "append_images": frames[1:], "comment": b"," * 300}
    assert frame_count(encoded(frames[0].convert("RGB"), "GIF", **options)) == 3
    data = bytearray(animation("GIF", [0, 200]))
    place = data.rindex(b"\x2c\0\0\0\0") + 5  # the second frame's width and height
    data[place : place + 4] = b"\xff\xff\xff\xff"
    assert decode(bytes(data)).animation == b""
    assert decode(animation("GIF", [0, 200])).animation


def test_frames_of_many_pixels_are_the_first_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    image = decode(animation("PNG"))
    monkeypatch.setattr(reading, "settings", lambda: Settings(max_pixels=3 * 24 * 24))
    assert [int(frame.pixels[0, 0, 0]) for frame in decode_frames(image, 3)] == LEVELS[:3]

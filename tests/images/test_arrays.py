"""Arrays and tensors at the door: what is a picture, what is an input, and what is neither."""

from collections import UserDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

import hookviz
from hookviz.images.arrays import picture_of

PIXELS = np.random.default_rng(3).integers(0, 256, (50, 70, 3), dtype=np.uint8)
OPAQUE = np.dstack([PIXELS, np.full((50, 70), 255, np.uint8)])
GREY = PIXELS[..., 0]
CHANNELS_FIRST = torch.from_numpy(PIXELS).permute(2, 0, 1)


def levels(image: Any) -> NDArray[np.uint8]:
    return hookviz.read_image(image).pixels


@pytest.mark.parametrize(
    "given",
    [
        *(PIXELS, OPAQUE, PIXELS[None], PIXELS.transpose(2, 0, 1), PIXELS.astype(np.uint16) * 257),
        *(PIXELS / 255, (PIXELS / 255).astype(np.float32), (PIXELS / 255).astype(">f8")),
        *(CHANNELS_FIRST, CHANNELS_FIRST[None], torch.from_numpy(PIXELS.copy())),
    ],
)
def test_a_picture_is_the_same_as_its_pillow_image(tiny: hookviz.Model, given: Any) -> None:
    np.testing.assert_array_equal(levels(given), PIXELS)
    expected = hookviz.prepare_input(tiny, Image.fromarray(PIXELS), size=20)
    assert torch.equal(hookviz.prepare_input(tiny, given, size=20).tensor, expected.tensor)
    assert torch.equal(hookviz.capture(tiny, given, size=20).input, expected.tensor)
    for grey in (GREY, GREY[..., None], GREY[None], torch.from_numpy(GREY.copy())[None]):
        np.testing.assert_array_equal(levels(grey), np.repeat(GREY[..., None], 3, axis=2))
    clear = np.dstack([PIXELS, np.zeros((50, 70), np.uint8)])  # it is blended as that of a file
    assert (hookviz.read_image(clear, background=(1, 2, 3)).pixels == (1, 2, 3)).all()


@pytest.mark.parametrize("kind", ["u2", "i4", "i8", "f4", "f8"])
def test_a_deep_grey_is_shown_in_the_window_of_a_file(kind: str, tmp_path: Path) -> None:
    deep = np.random.default_rng(4).integers(900, 1100, (50, 70)).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "deep.png")
    of_file = hookviz.read_image(tmp_path / "deep.png")
    np.testing.assert_array_equal(levels(deep.astype(kind)), of_file.pixels)
    assert hookviz.read_image(deep.astype(kind)).note == of_file.note


def test_whole_greys_stay_whole_as_far_as_pillow_has_them() -> None:
    ends = np.iinfo(np.int32)
    deep = np.full((9, 9), ends.max, np.int64)
    deep[0, 0] = ends.min
    kept = picture_of(deep)
    assert (kept.mode, kept.getextrema()) == ("I", (ends.min, ends.max))
    assert [picture_of(deep + step).mode for step in (1, -1)] == ["F", "F"]


def test_floats_may_leave_their_range_by_rounding_alone() -> None:
    for step in (-9e-5, 9e-5):  # as after a resize
        np.testing.assert_array_equal(levels(PIXELS / 255 + step), PIXELS)
    for step in (-2e-4, 2e-4):
        with pytest.raises(hookviz.ImageError, match="colours are floats in 0…1"):
            levels(PIXELS / 255 + step)


@pytest.mark.parametrize("kind", [np.float32, np.float64, ">f4"])
def test_an_array_of_floats_with_channels_first_is_an_input(tiny: hookviz.Model, kind: Any) -> None:
    values = np.random.default_rng(5).normal(size=(3, 20, 24)).astype(kind)
    expected = torch.from_numpy(values.astype(np.float64))
    for given in (values, values[None]):
        np.testing.assert_array_equal(
            hookviz.prepare_input(tiny, given).tensor[0].double(), expected
        )
    image: Any
    for image in (PIXELS, values, {"pixel_values": values}):  # and a lens takes it
        shown = hookviz.run_lens("grad-cam", tiny, image).values["map"]
        made = hookviz.run_lens("grad-cam", tiny, hookviz.prepare_input(tiny, image)).values["map"]
        np.testing.assert_array_equal(shown, made)
    with pytest.raises(hookviz.ImageError, match=r"\(3, 20, 24\) is an input already"):
        hookviz.read_image(values)
    with pytest.raises(hookviz.ImageError, match="size=8 is for images"):
        hookviz.prepare_input(tiny, values, size=8)


def test_what_an_image_processor_returned_is_an_input(tiny: hookviz.Model) -> None:
    values = torch.rand(1, 3, 20, 24)
    for given in (values, [values[0]], [values[0].numpy()], values.numpy()):
        processed = UserDict({"pixel_values": given, "pixel_mask": None})
        assert torch.equal(hookviz.prepare_input(tiny, processed).tensor, values)
        assert torch.equal(hookviz.capture(tiny, processed).input, values)
    two = torch.rand(2, 3, 20, 24).numpy()
    for batch in (two, {"pixel_values": two}, {"pixel_values": list(two)}):
        inputs = [capture.input[0] for capture in hookviz.capture(tiny, batch)]
        np.testing.assert_array_equal(torch.stack(inputs), two)
    pictures = hookviz.capture(tiny, np.stack([PIXELS, PIXELS[::-1]]))
    expected = hookviz.prepare_input(tiny, Image.fromarray(PIXELS[::-1].copy())).tensor
    assert torch.equal(pictures[1].input, expected)
    sound = hookviz.wrap(torch.nn.Sequential(torch.nn.Conv1d(1, 4, 9)))
    assert hookviz.prepare_input(sound, np.zeros((1, 80), np.float32)).tensor.shape == (1, 1, 80)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.stack([PIXELS, PIXELS]), r"batch of 2 images, \(2, 50, 70, 3\).*hookviz.capture\("),
        (torch.stack([CHANNELS_FIRST] * 2), r"batch of 2 images, \(2, 3, 50, 70\)"),
        (torch.zeros(2, 3, 8, 8), r"batch of 2 images.*hookviz.capture\(.*images\[0\]"),
        (np.zeros((2, 3, 8, 8)), "batch of 2 images"),
        ({"pixel_values": [PIXELS / 255, np.zeros((3, 3))]}, "batch of 2 images"),
        ([PIXELS, PIXELS], r"A list of 2 is no image; hookviz.capture\("),
        (np.zeros((5, 7)), r"shape \(5, 7\) and float64 .* a table rather than a picture"),
        (np.zeros((50, 70), object), r"\(50, 70\) and object can't .* no numbers"),
        (np.zeros((50, 70), complex), "complex128"),
        (np.zeros((0, 70)), "no numbers"),
        (np.zeros((50, 70, 2), np.uint8), "no rows and columns of 1, 3 or 4 channels"),
        (np.zeros(50, np.uint8), "no rows and columns"),
        (np.zeros((3, 50, 3)), r"\(C, H, W\) or \(H, W, C\)"),
        (PIXELS.astype(float), r"from 0 to 255, and colours are floats in 0…1 or uint8"),
        (np.full((50, 70, 3), np.nan), "from nan to nan"),
        (PIXELS.astype(int), "colours are uint8, uint16 or floats"),
        ({"input_ids": 1}, "'input_ids' has no image in it; a processor's has 'pixel_values'"),
        ({"pixel_values": None}, "no numbers"),
        ({"pixel_values": [[[1.0], [1.0, 2.0]]]}, "no numbers"),
    ],
)
def test_what_is_neither_is_refused_with_what_works(
    tiny: hookviz.Model, given: Any, said: str
) -> None:
    with pytest.raises(hookviz.ImageError, match=said):
        hookviz.prepare_input(tiny, given)


def test_a_reader_of_ones_own_takes_paths_and_bytes(tiny: hookviz.Model, tmp_path: Path) -> None:
    np.save(tmp_path / "deep.npy", np.random.default_rng(6).normal(size=(3, 20, 24)))

    def read(source: Any) -> Tensor:
        return torch.from_numpy(np.load(source)).float()

    model = hookviz.wrap(tiny.network, read=read)
    path = tmp_path / "deep.npy"
    assert torch.equal(hookviz.capture(model, path).input, read(path)[None])
    assert torch.equal(hookviz.capture(model, [path])[0].input, read(path)[None])
    assert hookviz.prepare_input(hookviz.wrap(tiny, read=read), str(path)).tensor.shape[-1] == 24
    assert hookviz.prepare_input(model, PIXELS).picture is not None
    with pytest.raises(hookviz.ModelError, match=r"read .* failed on .*gone\.npy.*FileNotFound"):
        hookviz.capture(model, tmp_path / "gone.npy")
    poor = hookviz.wrap(tiny.network, read=lambda _: torch.zeros(4, 5))
    with pytest.raises(hookviz.ModelError, match=r"returned a tensor of \(4, 5\) for the file's"):
        hookviz.capture(poor, b"bytes")


def test_what_torchvision_makes_of_a_picture_is_taken(tiny: hookviz.Model) -> None:
    with Image.open("assets/samples/cat.jpg") as picture:
        made = hookviz.prepare_input(tiny, pil_to_tensor(picture))
        expected = hookviz.prepare_input(tiny, picture)
    assert torch.equal(made.tensor, expected.tensor)
    assert made.picture is not None

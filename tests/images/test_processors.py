from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from torch import Tensor
from torchvision.transforms import functional as F  # its name everywhere

import hookviz
from hookviz.images.processors import ImageProcessor
from hookviz.images.samples import samples
from hookviz.types import Crop
from tests.networks import Tiny, seeded
from tests.other_libraries import library
from tests.pictures import picture

PHOTO = samples()[0].path
SMALL = {"shortest_edge": 80}, {"height": 64, "width": 64}

PROCESSORS: Mapping[str, tuple[str, Mapping[str, Any], tuple[float, float]]] = {
    # class, options, and the length of the shorter side and of the crop, as far as it has them
    "squeezed": ("ViTImageProcessor", {"size": SMALL[1]}, (0, 0)),
    "resized and cropped": (
        "CLIPImageProcessor",
        {"size": SMALL[0], "crop_size": SMALL[1]},
        (80, 64),
    ),
    "cropped by a share": (
        "ConvNextImageProcessor",
        {"size": {"shortest_edge": 64}, "crop_pct": 0.8},
        (80, 64),
    ),
    "resized whole": (
        "DetrImageProcessor",
        {"size": {"shortest_edge": 64, "longest_edge": 90}},
        (0, 0),
    ),
}


def known_part(image: Image.Image, short: float, crop: float) -> tuple[float, ...]:
    """Where the crop lies to a pixel of the resized image: left, top, right, bottom."""
    if not crop:
        return 0, 0, image.width, image.height
    scale = min(image.size) / short
    left, top = ((side / scale - crop) / 2 * scale for side in image.size)
    return left, top, left + crop * scale, top + crop * scale


@pytest.mark.parametrize("backend", ["", "Pil"])
@pytest.mark.parametrize("name", PROCESSORS)
@pytest.mark.parametrize("turned", [False, True])
def test_the_input_is_the_processors_own_and_its_place_is_known(
    name: str, backend: str, turned: bool
) -> None:
    kind, options, (short, crop) = PROCESSORS[name]
    processor = getattr(library("transformers"), kind + backend)(**options)
    image = Image.open(PHOTO).convert("RGB")
    image = image.rotate(90, expand=True) if turned else image
    made = hookviz.prepare(hookviz.wrap(seeded(Tiny), processor), image)
    theirs = processor(images=image, return_tensors="pt")["pixel_values"]
    assert torch.equal(made.tensor, theirs)
    assert isinstance(made.crop, Crop)
    part = (made.crop.left, made.crop.top, made.crop.right, made.crop.bottom)
    assert part == pytest.approx(known_part(image, short, crop), abs=min(image.size) / 64)
    assert made.picture is not None
    statistics = processor.image_mean, processor.image_std
    mean, std = (torch.tensor(each)[:, None, None] for each in statistics)
    assert torch.allclose(
        F.to_tensor(made.picture.copy()), theirs[0] * std + mean, atol=0.5001 / 255
    )


class Mirroring:
    """A processor that does more than it declares."""

    size = {"height": 32, "width": 32}  # noqa: RUF012
    do_rescale, do_normalize = True, False

    def preprocess(self, images: Image.Image, return_tensors: str) -> Mapping[str, Tensor]:
        assert return_tensors == "pt"
        small = ImageOps.mirror(images).resize((32, 32), Image.Resampling.BILINEAR)
        return {"pixel_values": F.to_tensor(small)[None]}

    __call__ = preprocess


def test_a_place_that_the_processor_does_not_declare_is_not_known() -> None:
    made = hookviz.prepare(hookviz.wrap(seeded(Tiny), Mirroring()), picture(1))
    assert torch.equal(made.tensor, Mirroring()(picture(1), "pt")["pixel_values"])
    assert (made.crop, made.picture) == (None, None)
    both = type("Both", (), {"image_processor": Mirroring(), "__call__": None})()
    model = hookviz.wrap(seeded(Tiny), processor=both)  # of images and text
    assert isinstance(model.preprocess, ImageProcessor)
    assert repr(model.preprocess) == "Mirroring"


def small(image: Image.Image) -> Tensor:
    return torch.from_numpy(np.asarray(image.resize((16, 16)), dtype=np.float32)).movedim(2, 0)


@pytest.mark.parametrize(
    "function",
    [
        lambda image: small(image)[None],
        lambda image: {"pixel_values": small(image)},
        lambda image: {"pixel_values": small(image)[None], "pixel_mask": torch.ones(1, 16, 16)},
        lambda image: {"pixel_values": [small(image).numpy()]},
        lambda image: {"pixel_values": small(image).numpy()},
    ],
)
def test_a_function_may_return_a_batch_of_one_or_a_dict(function: Callable[..., Any]) -> None:
    model = hookviz.wrap(seeded(Tiny), function)
    assert torch.equal(hookviz.prepare(model, picture()).tensor[0], small(picture()))
    with pytest.raises(hookviz.ModelError, match="a dict with it as pixel_values"):
        hookviz.prepare(hookviz.wrap(seeded(Tiny), lambda _: cast("Any", {"values": 1})), picture())

"""Inputs equal torchvision's bit for bit, and say truthfully what part of the image they show."""

import resource
import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageOps
from torch import Tensor
from torchvision import models
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as F  # its name everywhere
from torchvision.transforms.functional import center_crop, resize

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import HookVizError, ImageError, ModelError
from hookviz.images.preprocess import ImageProcessor, from_tensor, prepare, repainted
from hookviz.images.samples import samples
from hookviz.settings import Settings, settings
from hookviz.types import Crop, InputImage, Model, ModelInput, Preprocess
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
    made = hookviz.prepare_input(hookviz.wrap(seeded(Tiny), processor), image)
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
    made = hookviz.prepare_input(hookviz.wrap(seeded(Tiny), Mirroring()), picture(1))
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
    assert torch.equal(hookviz.prepare_input(model, picture()).tensor[0], small(picture()))
    with pytest.raises(hookviz.ModelError, match="a dict with it as pixel_values"):
        hookviz.prepare_input(
            hookviz.wrap(seeded(Tiny), lambda _: cast("Any", {"values": 1})), picture()
        )


WEIGHTS = {
    "resnet18": models.ResNet18_Weights.IMAGENET1K_V1,
    "efficientnet_b0": models.EfficientNet_B0_Weights.IMAGENET1K_V1,
    "efficientnet_b3": models.EfficientNet_B3_Weights.IMAGENET1K_V1,
    "inception_v3": models.Inception_V3_Weights.IMAGENET1K_V1,
    "convnext_tiny": models.ConvNeXt_Tiny_Weights.IMAGENET1K_V1,
    "regnet_y_400mf": models.RegNet_Y_400MF_Weights.IMAGENET1K_V2,
}
SHAPES = [(1, 1), (1, 40), (40, 1), (37, 211), (500, 375), (375, 500), (224, 224), (256, 256),
          (232, 300), (3, 2), (299, 1000)]  # fmt: skip
RESNET = Preprocess(resize=256, crop=224)
PLAIN = Preprocess(resize=256, crop=224, mean=(0.0,) * 3, std=(1.0,) * 3)


def image_of(pixels: NDArray[Any], name: str = "test.png") -> InputImage:
    frozen = pixels.astype(np.uint8)
    frozen.setflags(write=False)
    return InputImage(pixels=frozen, name=name, digest="")


def noise(height: int, width: int) -> InputImage:
    generator = np.random.default_rng(height * 1000 + width)
    return image_of(generator.integers(0, 256, (height, width, 3)))


def steps(preset: Any) -> Preprocess:
    return Preprocess(
        resize=preset.resize_size[0],
        crop=preset.crop_size[0],
        mean=tuple(preset.mean),
        std=tuple(preset.std),
        interpolation=preset.interpolation.value,
        antialias=preset.antialias,
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WEIGHTS)
def test_the_tensor_is_torchvisions_bit_for_bit(name: str, shape: tuple[int, int]) -> None:
    image, preset = noise(*shape), WEIGHTS[name].transforms()
    found = prepare(image, steps(preset))
    expected = preset(Image.fromarray(image.pixels)).unsqueeze(0)
    assert found.tensor.dtype == torch.float32
    assert torch.equal(found.tensor, expected)
    assert found.picture is not None
    assert not found.picture.flags.writeable
    seen = found.tensor[0].permute(1, 2, 0).numpy() * np.array(preset.std) + np.array(preset.mean)
    np.testing.assert_allclose(seen * 255, found.picture, atol=1e-3)  # before normalisation


@given(
    height=st.integers(1, 400),
    width=st.integers(1, 400),
    resize_to=st.integers(1, 90),
    crop=st.integers(1, 90),
    interpolation=st.sampled_from(["bilinear", "bicubic"]),
)
@hypothesis_settings(max_examples=150, deadline=None)
def test_any_resize_and_crop_is_torchvisions(
    height: int, width: int, resize_to: int, crop: int, interpolation: str
) -> None:
    image = noise(height, width)
    mode = InterpolationMode(interpolation)
    picture = center_crop(resize(Image.fromarray(image.pixels), [resize_to], mode), [crop])
    found = prepare(image, Preprocess(resize_to, crop, interpolation=interpolation))
    assert found.picture is not None
    np.testing.assert_array_equal(found.picture, np.asarray(picture))


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 40), (40, 1), (37, 211), (211, 37), (500, 375), (5, 900), (2, 3)]
)
@pytest.mark.parametrize(("resize_to", "crop"), [(256, 224), (100, 131), (131, 100), (20, 20)])
def test_the_detour_for_long_thin_images_is_one_level_off_at_most(
    shape: tuple[int, int],
    resize_to: int,
    crop: int,
    interpolation: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Middling contrast: Pillow chooses by size whether rows or columns come first, and the order
    # shows where bicubic overshoots 0…255.
    image = image_of(96 + noise(*shape).pixels // 4)
    wanted = Preprocess(resize_to, crop, interpolation=interpolation)
    direct = prepare(image, wanted)
    monkeypatch.setattr("hookviz.images.preprocess._DETOUR", 0)
    detour = prepare(image, wanted)
    assert direct.picture is not None
    assert detour.picture is not None
    assert np.abs(direct.picture.astype(int) - detour.picture).max() <= 1
    assert direct.crop == detour.crop


@pytest.mark.parametrize("shape", [(1, 4000), (4000, 1), (2, 50_000), (1, 1)])
def test_extreme_shapes_take_little_memory(shape: tuple[int, int]) -> None:
    image = noise(*shape)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert prepare(image, RESNET).tensor.shape == (1, 3, 224, 224)
    assert prepare(image, RESNET, whole=True, min_size=32).tensor.numel() > 0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_an_image_of_48_megapixels_and_no_antialias() -> None:
    found = prepare(image_of(np.full((6000, 8000, 3), (10, 20, 30), dtype=np.uint8)), RESNET)
    assert found.picture is not None
    assert (found.picture == (10, 20, 30)).all()
    assert found.crop is not None
    assert found.crop.left == pytest.approx(1360.7, abs=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, smooth = (Preprocess(16, 12, antialias=each) for each in (False, True))
        found = prepare(noise(30, 40), plain)
    assert torch.equal(found.tensor, prepare(noise(30, 40), smooth).tensor)


def ramps(height: int, width: int) -> InputImage:
    """Red says the column of a pixel and green its row, for sides up to 255."""
    rows, columns = np.mgrid[0:height, 0:width]
    return image_of(np.stack([columns, rows, np.zeros_like(rows)], axis=-1))


def places(found: ModelInput) -> tuple[NDArray[Any], NDArray[Any]]:
    """Where the crop says that the middle of each row and column of the input is."""
    crop = found.crop
    assert crop is not None
    rows = crop.top + (np.arange(crop.height) + 0.5) * (crop.bottom - crop.top) / crop.height
    columns = crop.left + (np.arange(crop.width) + 0.5) * (crop.right - crop.left) / crop.width
    return rows, columns


CUTS = [PLAIN, Preprocess(50, 97), Preprocess(97, 50), Preprocess(232, 224)]
OPTIONS = [{}, {"size": 99}, {"whole": True}, {"whole": True, "size": 61}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("steps", CUTS)
@pytest.mark.parametrize("shape", [(200, 200), (160, 255), (255, 101), (30, 250), (64, 65)])
def test_every_input_pixel_lies_where_the_crop_says(
    shape: tuple[int, int], steps: Preprocess, options: dict[str, Any]
) -> None:
    image = ramps(*shape)
    found = prepare(image, steps, **options)
    assert found.picture is not None
    rows, columns = places(found)
    assert found.picture.shape == (len(rows), len(columns), 3)
    margin = 1 + max(1.0, rows[1] - rows[0])  # at the image's edges a filter sees one side only
    down = (rows > margin) & (rows < image.height - margin)
    across = (columns > margin) & (columns < image.width - margin)
    assert down.any()
    assert across.any()
    inner = found.picture[np.ix_(down, across)].astype(float) + 0.5  # a pixel's middle
    np.testing.assert_allclose(inner[:, :, 0], np.tile(columns[across], (down.sum(), 1)), atol=0.52)
    np.testing.assert_allclose(inner[:, :, 1].T, np.tile(rows[down], (across.sum(), 1)), atol=0.52)


@pytest.mark.parametrize("shape", [(375, 500), (1280, 720), (901, 1777), (2000, 300)])
@pytest.mark.parametrize("whole", [False, True])
def test_an_edge_lies_where_the_crop_says(shape: tuple[int, int], whole: bool) -> None:
    height, width = shape
    middle = max(0, (height - width) // 2), max(0, (width - height) // 2)  # of the central square
    side = min(shape)
    for share in (0.21, 0.5, 0.77):
        edge = middle[0] + round(side * share), middle[1] + round(side * share)
        pixels = np.zeros((height, width, 3))
        pixels[:, edge[1] :, 0] = 255
        pixels[edge[0] :, :, 1] = 255
        found = prepare(image_of(pixels), RESNET, whole=whole)
        assert found.picture is not None
        assert found.crop is not None
        for channel, axis, at in ((0, 1, edge[1]), (1, 0, edge[0])):
            profile = found.picture[..., channel].mean(axis=1 - axis)
            dark = np.sum(1 - profile / 255)  # how many input pixels lie before the edge
            low, high = (
                (found.crop.left, found.crop.right) if axis else (found.crop.top, found.crop.bottom)
            )
            step = (high - low) / len(profile)
            assert low + dark * step == pytest.approx(at, abs=0.02 * step + 0.1)
    # The crop reaches past the image where torchvision pads.
    found = prepare(image_of(np.full((10, 20, 3), 200)), Preprocess(10, 15))
    assert found.crop is not None
    assert found.picture is not None
    assert (found.crop.top, found.crop.bottom, found.crop.left, found.crop.right) == (-2, 13, 2, 17)
    assert (found.picture == 0).all(axis=(1, 2)).tolist() == [True] * 2 + [False] * 10 + [True] * 3


@pytest.mark.parametrize(("size", "resized"), [(224, 256), (112, 128), (448, 512), (33, 38)])
def test_another_size_scales_resize_and_crop_together(
    size: int, resized: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = noise(300, 400)
    found = prepare(image, RESNET, size=size)
    expected = prepare(image, Preprocess(resized, size))
    assert found.tensor.shape == (1, 3, size, size)
    assert torch.equal(found.tensor, expected.tensor)
    assert found.crop == expected.crop
    monkeypatch.setattr("hookviz.images.preprocess.settings", lambda: Settings(max_input=64))
    for whole in (False, True):  # a model larger than the setting keeps its own size
        assert prepare(noise(90, 90), RESNET, whole=whole).tensor.shape == (1, 3, 224, 224)


@pytest.mark.parametrize("size", [-1, 0, 1025, 10**9])
@pytest.mark.parametrize("whole", [False, True])
def test_a_size_out_of_range_is_refused_with_the_range(size: int, whole: bool) -> None:
    with pytest.raises(ImageError, match=rf"size of {size} pixels.* 1 to {settings().max_input}"):
        prepare(noise(9, 9), RESNET, size=size, whole=whole, min_size=32)


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((300, 400), None, (224, 299)),
        ((400, 300), None, (299, 224)),
        ((100, 100), 64, (64, 64)),
        ((100, 100), 2, (2, 2)),
        ((100, 300), 64, (64, 192)),
        ((100, 1000), 224, (102, 1024)),
        ((1, 4000), None, (32, 1024)),
        ((4000, 1), None, (1024, 32)),
        ((1, 1), None, (224, 224)),
    ],
)
def test_the_whole_image(
    shape: tuple[int, int], size: int | None, expected: tuple[int, int]
) -> None:
    found = prepare(noise(*shape), RESNET, size=size, whole=True, min_size=32)
    assert found.crop is not None
    assert found.tensor.shape == (1, 3, *expected)
    assert (found.crop.height, found.crop.width) == expected
    assert (found.crop.left, found.crop.top) == (0, 0)
    assert (found.crop.right, found.crop.bottom) == (shape[1], shape[0])


def test_a_grey_model_gets_luma() -> None:
    colours = np.zeros((8, 8, 3))
    colours[:, :, 1] = 200
    found = prepare(image_of(colours), Preprocess(8, 8, mean=(0.5,), std=(0.5,)))
    assert found.tensor.shape == (1, 1, 8, 8)
    assert found.picture is not None
    assert found.picture.shape == (8, 8, 3)
    luma = round(0.587 * 200)  # ITU-R BT.601-2
    assert (found.picture == luma).all()
    assert found.tensor.min() == found.tensor.max()
    assert found.tensor.min().item() == pytest.approx((luma / 255 - 0.5) / 0.5, abs=1e-6)
    for channels in (0, 2, 4):
        steps = Preprocess(8, 8, mean=(0.5,) * channels, std=(0.5,) * channels)
        with pytest.raises(ImageError, match=rf"takes {channels} channels.*Give it a tensor"):
            prepare(noise(9, 9), steps)


def test_the_digest_is_of_shape_and_values() -> None:
    same = prepare(noise(50, 60), RESNET).digest
    assert prepare(noise(50, 60), RESNET).digest == same
    assert len(same) == 32
    others = [
        prepare(noise(60, 50), RESNET),
        prepare(noise(50, 60), RESNET, size=112),
        prepare(noise(50, 60), PLAIN),
        from_tensor(torch.zeros(1, 2, 3)),
        from_tensor(torch.zeros(1, 3, 2)),
    ]
    assert len({same, *(other.digest for other in others)}) == 6


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (Preprocess(8, 8, std=(1.0,)), "must be 3 numbers"),
        (Preprocess(8, 8, std=(1.0, 0.0, 1.0)), "other than 0"),
        (Preprocess(8, 8, interpolation="lanczos"), "'lanczos'.*'bilinear' or 'bicubic'"),
        (Preprocess(0, 8), "1 pixel or more"),
    ],
)
def test_steps_that_make_no_sense_are_refused(steps: Preprocess, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        prepare(noise(9, 9), steps)


@pytest.mark.parametrize("batch", [(), (1,)])
def test_a_function_gets_the_image_and_decides(batch: tuple[int, ...]) -> None:
    seen: list[Image.Image] = []

    def function(picture: Image.Image) -> torch.Tensor:
        seen.append(picture)
        return torch.full((*batch, 3, 4, 5), 2.0, dtype=torch.float64, requires_grad=True)

    found = prepare(noise(7, 9), function)
    assert (seen[0].mode, seen[0].size) == ("RGB", (9, 7))
    np.testing.assert_array_equal(np.asarray(seen[0]), noise(7, 9).pixels)
    assert found.tensor.shape == (1, 3, 4, 5)
    assert found.tensor.dtype == torch.float64
    assert not found.tensor.requires_grad
    assert found.picture is None
    assert found.crop is None
    for options in ({"size": 64}, {"whole": True}):
        with pytest.raises(HookVizError, match="its own function"):
            prepare(noise(7, 9), function, **options)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "a NoneType"),
        (np.zeros((4, 5)), r"a tensor of \(4, 5\)"),
        (torch.zeros(4, 5), r"a tensor of \(4, 5\)"),
        (torch.zeros(2, 3, 4, 5), r"a tensor of \(2, 3, 4, 5\)"),
        (torch.zeros(3, 0, 5), r"a tensor of \(3, 0, 5\)"),
        (torch.zeros(3, 4, 5, dtype=torch.uint8), "torch.uint8"),
    ],
)
def test_a_function_that_returns_no_input(returned: Any, said: str) -> None:
    with pytest.raises(ModelError, match=rf"returned .*{said}.*'test\.png'"):
        prepare(noise(7, 9), lambda _: returned)


def test_a_function_that_fails() -> None:
    def function(_: Image.Image) -> torch.Tensor:
        raise KeyError("mean")

    with pytest.raises(ModelError, match=r"failed on 'test\.png': KeyError: 'mean'") as caught:
        prepare(noise(7, 9), function)
    assert isinstance(caught.value.__cause__, KeyError)

    def refusing(_: Image.Image) -> torch.Tensor:
        raise ImageError("too dark")

    with pytest.raises(ImageError, match="too dark"):
        prepare(noise(7, 9), refusing)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("batch", [(), (1,)])
def test_a_tensor_is_taken_as_it_is(dtype: torch.dtype, batch: tuple[int, ...]) -> None:
    given_one = torch.arange(24.0).reshape(*batch, 2, 3, 4).to(dtype).transpose(-1, -2)
    given_one.requires_grad_()
    found = from_tensor(given_one)
    assert found.tensor.shape == (1, 2, 4, 3)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    assert found.tensor.dtype == wide
    assert found.tensor.is_contiguous()
    assert not found.tensor.requires_grad
    expected = given_one.detach().to(wide).reshape(1, 2, 4, 3).clone()
    with torch.no_grad():
        given_one.fill_(1)  # later changes do not reach the input
    assert torch.equal(found.tensor, expected)
    assert (found.picture, found.crop) == (None, None)


@pytest.mark.parametrize(
    "wrong",
    [
        *(torch.zeros(shape) for shape in ((4, 5), (2, 3, 4, 5), (1, 1, 3, 4, 5), (0, 3, 4, 5))),
        *(torch.zeros(3, 4, 5, dtype=dtype) for dtype in (torch.int64, torch.complex64)),
        *(torch.zeros(3, 4, 0), torch.tensor(1.0), "picture.png"),
    ],
)
def test_what_is_no_input_tensor_is_refused(wrong: Any) -> None:
    works = r"give one image as a float tensor of \(C, H, W\)|images\[0\] is one"
    with pytest.raises(ImageError, match=works):
        from_tensor(wrong)


def test_the_picture_itself_gives_the_input_itself() -> None:
    grey = hookviz.wrap(
        torch.nn.Conv2d(1, 2, 3), Preprocess(resize=16, crop=16, mean=(0.5,), std=(0.5,))
    )
    for model in (hookviz.load_model("shapesnet"), hookviz.load_model("squeezenet"), grey):
        made = prepare_input(model, picture())
        assert made.picture is not None
        again = repainted(model, made, made.picture)
        assert torch.equal(again.tensor, made.tensor)
        assert again.digest == made.digest
        assert again.crop == made.crop


def test_a_change_is_in_the_tensor_and_in_the_picture(tiny: Model) -> None:
    made = prepare_input(tiny, picture())
    assert made.picture is not None
    black = np.zeros_like(made.picture)
    again = repainted(tiny, made, black)
    steps = tiny.preprocess
    assert isinstance(steps, Preprocess)
    for channel, (mean, std) in enumerate(zip(steps.mean, steps.std, strict=True)):
        expected = torch.full((16, 16), -mean / std)
        torch.testing.assert_close(again.tensor[0, channel], expected)
    assert again.picture is not None
    assert np.array_equal(again.picture, black)
    assert again.digest != made.digest
    own = hookviz.wrap(seeded(Tiny), lambda image: torch.zeros(3, 16, 16))
    for model, image, reason in (
        (own, picture(), "function of its own"),
        (tiny, torch.zeros(1, 3, 16, 16), "given as a tensor"),
    ):
        with pytest.raises(HookVizError, match=reason):
            repainted(model, prepare_input(model, image), black)

"""What sizes tell of rows, columns, channels and tokens, against plain hooks at three sizes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torchvision import models
from torchvision.models.vision_transformer import VisionTransformer

import hookviz
from hookviz.capturing.axes import LargerInput, at_larger_size
from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.watched_pass import watch
from hookviz.types import FIRST, LAST, Layout, Preprocess
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import OfFunction
from tests.plain_hooks import every_output

Shapes = dict[str, tuple[int, ...]]

IMAGE = LargerInput((3, 224, 224))  # 288 × 352
VIDEO = LargerInput((3, 8, 224, 224))
SOUND = LargerInput((2, 640))  # 704


def shapes_at(network: nn.Module, rows: int, columns: int) -> Shapes:
    """Shapes of what every module puts out, by plain hooks in a pass without data."""
    shapes: Shapes = {}

    def keep(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, _inputs: Any, output: Any) -> None:
            if isinstance(output, Tensor):
                shapes.setdefault(name, tuple(output.shape))

        return hook

    for name, module in network.named_modules():
        module.register_forward_hook(keep(name))
    with torch.no_grad():
        network(torch.empty(1, 3, rows, columns, device="meta"))
    return shapes


def told_by_sizes(name: str, own: Shapes, taller: Shapes, wider: Shapes) -> str | None:
    """What three sizes say of an output of four axes; None where they say nothing."""
    if len(own[name]) != 4:
        return None
    rows = [a for a in range(4) if own[name][a] != taller[name][a]]
    columns = [a for a in range(4) if own[name][a] != wider[name][a]]
    told: dict[tuple[int, ...], str] = {(2, 3): "channels first", (1, 2): "channels last"}
    return told.get((*rows, *columns))


@pytest.mark.parametrize(
    ("build", "first", "last"),
    [
        (models.resnet18, 60, 0),
        (models.convnext_tiny, 100, 90),
        (models.swin_t, 2, 150),
        (models.segmentation.deeplabv3_resnet50, 150, 0),
    ],
)
def test_every_layer_lies_as_three_sizes_tell(
    build: Callable[..., nn.Module], first: int, last: int
) -> None:
    options = {"weights_backbone": None} if "segmentation" in build.__module__ else {}
    make = partial(build, weights=None, **options)
    model = hookviz.wrap(seeded(make))
    with torch.device("meta"):
        networks = [make().eval() for _ in range(3)]
    sizes = ((224, 224), (320, 224), (224, 352))
    own, taller, wider = (shapes_at(n, *size) for n, size in zip(networks, sizes, strict=True))
    listed = {info.name: info for info in layer_trace(model, (3, 224, 224)).every}
    counts = {"channels first": 0, "channels last": 0}
    for name, info in listed.items():
        told = told_by_sizes(name, own, taller, wider) if name in own else None
        if told is None:
            continue
        counts[told] += 1
        assert info.layout == told, info
        batch, *axes = own[name]
        channels, *cells = axes if told == "channels first" else (axes[-1], *axes[:-1])
        assert info.output_shape == (channels, *cells)
        assert batch == 1
    assert counts["channels first"] >= first
    assert counts["channels last"] == last


def _vit() -> nn.Module:
    network: nn.Module = VisionTransformer(32, 8, 2, 2, 24, 48, num_classes=5)
    return network


def _timm_vit(**options: Any) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer as Timm  # noqa: PLC0415 - slow

    made: nn.Module = Timm(
        img_size=32, patch_size=8, embed_dim=24, depth=2, num_heads=2, num_classes=5, **options
    )
    return made


TRANSFORMERS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "torchvision": (_vit, 1),
    "timm": (_timm_vit, 1),
    "timm with registers": (partial(_timm_vit, reg_tokens=4), 5),
    "timm without a class token": (
        partial(_timm_vit, class_token=False, global_pool="avg"),
        0,
    ),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_tokens_are_maps_of_their_patches(name: str) -> None:
    build, prefix = TRANSFORMERS[name]
    model = hookviz.wrap(seeded(build), Preprocess(32, 32))
    image = random_input(1, 32)
    truth = every_output(seeded(build).eval(), image)
    tokens = [info for info in hookviz.list_layers(model, kind="maps") if info.layout == "tokens"]
    behind = [info for info in tokens if info.prefix_tokens == prefix]
    assert len(behind) > 20
    one = [info for info in tokens if isinstance(truth[info.name][0], Tensor)]
    cap = hookviz.capture(model, image, [info.name for info in one])
    for info in one:
        seen = truth[info.name][0][0]
        assert torch.equal(cap[info.name].raw, seen)
        cells = seen[info.prefix_tokens :].reshape(4, 4, -1).permute(2, 0, 1)
        assert torch.equal(cap[info.name].values, cells)
        assert info.output_shape == cells.shape


class _Unfolds(nn.Module):
    """Convolves patches that are unfolded to rows, as MobileViTv2 does."""

    def __init__(self, *, takes_one_size: bool = False) -> None:
        super().__init__()
        self.takes_one_size = takes_one_size
        self.before, self.inside = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 1)
        self.behind = nn.Conv2d(6, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        if self.takes_one_size and images.shape[2:] not in ((16, 24), (16, 16)):
            raise ValueError("another size")
        maps = self.before(images)
        (rows, columns), cut = maps.shape[2:], (-1, 6, maps.shape[2] // 2, 2, maps.shape[3] // 2, 2)
        patches = self.inside(maps.reshape(cut).permute(0, 1, 3, 5, 2, 4).flatten(4).flatten(2, 3))
        folded = (
            patches.unflatten(3, (rows // 2, -1)).unflatten(2, (2, 2)).permute(0, 1, 4, 2, 5, 3)
        )
        scores: Tensor = self.behind(folded.reshape(-1, 6, rows, columns)).mean((2, 3))
        return scores


@pytest.mark.parametrize("takes_one_size", [False, True])
def test_a_convolution_over_unfolded_patches_puts_out_no_map(*, takes_one_size: bool) -> None:
    model = as_model(seeded(lambda: _Unfolds(takes_one_size=takes_one_size)))
    layouts = [info.layout for info in hookviz.list_layers(model, input_shape=(3, 16, 24))]
    assert layouts == ["channels first", "unknown", "channels first"]
    image = random_input(1, 16)
    cap = hookviz.capture(model, image)
    assert torch.equal(cap["inside"].values, every_output(seeded(_Unfolds), image)["inside"][0][0])
    assert hookviz.make_grid(cap["inside"]).about.startswith("This is no map")
    with pytest.raises(hookviz.ModelError, match="nobody knows"):
        hookviz.run_lens("grad-cam", model, image, layer="inside")


class _CoordinateAttention(nn.Module):
    """Hou et al. 2021: a convolution over rows and columns that stand behind each other."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.squeeze = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 2, 1)
        self.act, self.high, self.wide = nn.Hardswish(), nn.Conv2d(2, 6, 1), nn.Conv2d(2, 6, 1)
        self.behind = nn.Conv2d(6, 5, 3)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.before(images)
        rows, columns = maps.mean(3, keepdim=True), maps.mean(2, keepdim=True).transpose(2, 3)
        both = self.act(self.squeeze(torch.cat([rows, columns], 2)))
        high, wide = both.split([maps.shape[2], maps.shape[3]], 2)
        gates = self.high(high).sigmoid() * self.wide(wide.transpose(2, 3)).sigmoid()
        scores: Tensor = self.behind(maps * gates).mean((2, 3))
        return scores


@pytest.mark.parametrize("size", [(16, 16), (16, 32), (64, 48)])
def test_rows_and_columns_behind_each_other_are_no_map(size: tuple[int, int]) -> None:
    model = as_model(seeded(_CoordinateAttention))
    layouts = {info.name: info.layout for info in layer_trace(model, (3, *size)).every}
    unknown = dict.fromkeys(("squeeze", "act"), "unknown")
    first = dict.fromkeys(("before", "high", "wide", "behind"), "channels first")
    assert layouts == unknown | first


def alone(maps: Tensor) -> Tensor:
    """The channels last, of one size of input alone."""
    if maps.shape[2:] != (14, 14):
        raise ValueError("14×14 alone")
    return maps.movedim(1, -1)


@pytest.mark.parametrize(
    ("modules", "layouts"),
    [
        # a strip is a map
        (
            [
                *(nn.Conv2d(3, 6, 3, padding=1), nn.AdaptiveAvgPool2d((None, 1))),
                *(nn.Conv2d(6, 6, (3, 1)), OfFunction(lambda maps: maps.movedim(1, -1))),
                nn.Linear(6, 6),
            ],
            [*[FIRST] * 3, LAST, LAST],
        ),
        # a square that is turned is none
        (
            [
                *(nn.Conv2d(3, 6, 3), OfFunction(lambda maps: maps.transpose(2, 3))),
                *(nn.GELU(), nn.Linear(14, 5)),
            ],
            [FIRST, *["unknown"] * 3],
        ),
        (
            [nn.Conv2d(3, 6, 3), OfFunction(alone), nn.LayerNorm(6), nn.Linear(6, 5)],
            [FIRST, *[LAST] * 3],
        ),
    ],
)
def test_what_is_made_of_maps_lies_as_it_is_made(
    modules: list[nn.Module], layouts: list[str]
) -> None:
    model = as_model(seeded(lambda: nn.Sequential(*modules)))
    listed = layer_trace(model, (3, 16, 16)).every
    assert [info.layout for info in listed] == layouts
    last = listed[-1].name
    cap = hookviz.capture(model, random_input(1, 16), [f"{int(last) - 1}", last, "0"], inputs=True)
    (given,) = cap.inputs(last)  # what a layer was given lies as it was put out
    assert torch.equal(given.raw, cap[f"{int(last) - 1}"].raw)
    assert torch.equal(given.values, cap[f"{int(last) - 1}"].values)
    assert cap.inputs("0")[0].layout.order == "channels first"


@pytest.mark.parametrize(
    ("larger", "before", "after", "layout"),
    [
        (IMAGE, (1, 8, 56, 56), (1, 8, 72, 88), Layout(FIRST)),
        (IMAGE, (1, 56, 56, 8), (1, 72, 88, 8), Layout(LAST)),
        (IMAGE, (1, 8, 16, 16), (1, 8, 20, 25), Layout(FIRST)),  # patches of 14 pixels
        (IMAGE, (1, 8, 4, 4), (1, 8, 5, 6), Layout(FIRST)),  # a stride of 64
        (IMAGE, (1, 8, 214, 214), (1, 8, 278, 342), Layout(FIRST)),  # no padding
        (IMAGE, (1, 8, 56, 56), (1, 8, 88, 72), None),  # columns before rows
        (IMAGE, (1, 8, 1, 1), (1, 8, 2, 2), None),  # either
        (IMAGE, (1, 8, 28, 1), (1, 8, 40, 1), None),  # rows and columns behind each other
        (IMAGE, (1, 2, 196, 196), (1, 2, 396, 396), None),  # attention
        (IMAGE, (1, 2, 196, 391), (1, 2, 396, 791), None),  # distances between tokens
        (IMAGE, (1, 8, 4, 196), (1, 8, 4, 396), None),  # patches
        (IMAGE, (1, 196, 8), (1, 396, 8), None),
        (IMAGE, (4, 8, 28, 28), (6, 8, 28, 28), None),  # windows
        (VIDEO, (1, 8, 4, 56, 56), (1, 8, 4, 72, 88), Layout(FIRST)),
        (VIDEO, (1, 4, 56, 56, 8), (1, 4, 72, 88, 8), Layout(LAST, frames=4)),
        (SOUND, (1, 8, 320), (1, 8, 352), Layout(FIRST)),
        (SOUND, (1, 320, 8), (1, 352, 8), None),
    ],
)
def test_rows_and_columns_are_told_by_how_much_they_grow(
    larger: LargerInput, before: tuple[int, ...], after: tuple[int, ...], layout: Layout | None
) -> None:
    assert larger.layout(before, after) == layout
    for shape, grown in (
        ((3, 96, 160), (3, 224, 224)),
        ((3, 8, 64, 32), (3, 8, 128, 160)),
        ((2, 640), (2, 704)),
    ):
        assert LargerInput(shape).shape == grown
    assert IMAGE.shape == (3, 288, 352)  # sides grow by different shares


@pytest.mark.parametrize(
    ("order", "before", "after", "allowed"),
    [
        (FIRST, (1, 8, 56, 1), (1, 8, 72, 1), True),  # a mean over columns
        (FIRST, (1, 8, 1, 1), (1, 8, 1, 1), True),
        (FIRST, (1, 8, 14, 56), (1, 8, 18, 88), True),  # rows of a larger stride than columns
        (FIRST, (1, 8, 56, 56), (1, 8, 88, 72), False),
        (FIRST, (1, 56, 56, 8), (1, 72, 88, 8), False),
        (LAST, (1, 56, 56, 8), (1, 72, 88, 8), True),
        (FIRST, (1, 8, 28, 1), (1, 8, 40, 1), False),
        (FIRST, (1, 8, 4, 49), (1, 8, 4, 99), False),
        (FIRST, (1, 8, 56, 56), (1, 8, 40, 88), False),  # it shrinks
        (FIRST, (2, 8, 56, 56), (3, 8, 56, 56), False),
    ],
)
def test_what_is_followed_may_be_contradicted(
    order: str, before: tuple[int, ...], after: tuple[int, ...], *, allowed: bool
) -> None:
    assert IMAGE.allows(order, before, after, [((14, 18), (14, 22))]) == allowed


class Sized(nn.Module):
    def __init__(self, sides: tuple[int, ...]) -> None:
        super().__init__()
        self.conv, self.act = nn.Conv2d(3, 4, 3), nn.ReLU()
        self.sides, self.ran = sides, 0

    def forward(self, images: Tensor) -> Tensor:
        self.ran += 1
        maps = self.conv(images)
        if any(side not in self.sides for side in images.shape[2:]):
            raise ValueError("another size")
        acted: Tensor = self.act(maps)
        return acted.mean((2, 3))


@pytest.mark.parametrize(("sides", "calls"), [((16, 80, 144), 2), ((16,), 1)])
def test_one_pass_goes_as_far_as_the_network_does(sides: tuple[int, ...], calls: int) -> None:
    network = seeded(lambda: Sized(sides))
    watched = watch(network, torch.zeros(1, 3, 16, 16)).calls
    larger, others = at_larger_size(as_model(network), (3, 16, 16), watched)
    assert larger.shape == (3, 80, 144)
    assert [each.shapes[()] for each in others] == [(1, 4, 78, 142)] * calls
    assert network.ran == 2
    pool = nn.MaxPool2d(2)
    resized = nn.Sequential(nn.Conv2d(3, 4, 3), pool, nn.ReLU())

    def run(x: Tensor) -> Any:
        maps = resized[0](x)
        return resized[2](maps if x.shape[2] < 20 else pool(maps))

    resized.forward = run  # type: ignore[method-assign]
    watched = watch(resized, torch.zeros(1, 3, 16, 16)).calls
    _, others = at_larger_size(as_model(resized), (3, 16, 16), watched)
    assert [each.layer for each in others] == ["0"]  # behind it another way tells no more

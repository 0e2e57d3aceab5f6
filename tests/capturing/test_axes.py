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
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import ActivationKey, Preprocess
from tests.networks import as_model, random_input, seeded
from tests.plain_hooks import every_output

Shapes = dict[str, tuple[int, ...]]


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


def test_a_distilled_transformer_has_two_tokens_before_its_patches() -> None:
    timm = pytest.importorskip("timm")
    network = seeded(
        lambda: timm.create_model(
            "deit_tiny_distilled_patch16_224", depth=1, embed_dim=24, num_heads=2
        )
    )
    listed = {info.name: info for info in layer_trace(hookviz.wrap(network), (3, 224, 224)).every}
    assert listed["blocks.0.mlp.fc1"].prefix_tokens == 2
    assert listed["blocks.0.mlp.fc1"].output_shape == (96, 14, 14)
    assert listed["blocks.0.attn.q_norm"].layout == "unknown"  # of heads × tokens × their part


class Embedded(nn.Module):
    """A person's own transformer of one size; `order` makes its tokens of the patches."""

    def __init__(self, order: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.order = order
        self.patches = nn.Conv2d(3, 6, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 17, 6))
        self.token = nn.Parameter(torch.randn(1, 1, 6))
        self.norm = nn.LayerNorm(6)
        self.mix = nn.MultiheadAttention(6, 2, batch_first=True)
        self.widen = nn.Linear(6, 12)
        self.act = nn.GELU()
        self.head = nn.Linear(12, 5)

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.order(self.patches(images))
        tokens = torch.cat([self.token.expand(len(images), -1, -1), tokens], 1) + self.place
        normed = self.norm(tokens)
        mixed = self.mix(normed, normed, normed)[0] + tokens
        scores: Tensor = self.head(self.act(self.widen(mixed))[:, 0])
        return scores


def _by_rows(maps: Tensor) -> Tensor:
    return maps.flatten(2).transpose(1, 2)


def test_a_network_of_one_size_is_proven_by_moving_a_patch() -> None:
    network = seeded(lambda: Embedded(_by_rows))
    listed = {info.name: info for info in layer_trace(as_model(network), (3, 16, 16)).every}
    for name, channels in {"norm": 6, "mix": 6, "widen": 12, "act": 12}.items():
        assert listed[name].layout == "tokens", name
        assert listed[name].prefix_tokens == 1
        assert listed[name].output_shape == (channels, 4, 4)


@pytest.mark.parametrize(
    "order",
    [
        lambda maps: maps.transpose(2, 3).flatten(2).transpose(1, 2),
        lambda maps: maps.flip(3).flatten(2).transpose(1, 2),
        lambda maps: maps.flip(2).flatten(2).transpose(1, 2),
        lambda maps: maps.flatten(2).flip(2).transpose(1, 2),
        lambda maps: maps.flatten(2).softmax(2).transpose(1, 2),  # mixes all patches
    ],
)
def test_tokens_in_another_order_are_no_maps(order: Callable[[Tensor], Tensor]) -> None:
    model = as_model(seeded(lambda: Embedded(order)))
    listed = {info.name: info for info in layer_trace(model, (3, 16, 16)).every}
    assert listed["norm"].layout == listed["act"].layout == "unknown"
    assert {info.name for info in hookviz.list_layers(model, kind="maps")} == {"patches"}
    cap = hookviz.capture(model, random_input(1), ["act"])
    assert cap["act"].values.shape == cap["act"].raw.shape == (17, 12)
    with pytest.raises(hookviz.HookVizError, match="no map"):
        hookviz.make_grid(cap["act"])


class Windows(nn.Module):
    """Windows of 4 × 4 cells, as many as fit, each of which is one of the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 1)
        self.mix = nn.Linear(6, 6)
        self.out = nn.Conv2d(6, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        count, channels, rows, columns = maps.shape
        parts = maps.view(count, channels, rows // 4, 4, columns // 4, 4)
        windows = parts.permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, channels)
        back = self.mix(windows).view(count, rows // 4, columns // 4, 4, 4, channels)
        last = back.permute(0, 5, 1, 3, 2, 4).reshape(count, channels, rows, columns)
        scores: Tensor = self.out(last).mean((2, 3))
        return scores


def test_windows_are_put_back_where_they_lie() -> None:
    network = seeded(Windows)
    model = as_model(network)
    mixed = {info.name: info for info in layer_trace(model, (3, 16, 16)).every}["mix"]
    assert (mixed.layout, mixed.output_shape) == ("windows", (6, 16, 16))
    image = random_input(2)
    recorded = hookviz.capture(model, image, "mix")["mix"]
    assert torch.equal(recorded.raw, every_output(network, image)["mix"][0])
    by_cell = network.mix(network.conv(image).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)[0]
    assert torch.allclose(recorded.values, by_cell, atol=1e-6)
    assert hookviz.make_grid(recorded).shape == (6, 16, 16)


class Turned(nn.Module):
    """A network of one size, with its channels last by code alone."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, padding=1)
        self.norm = nn.LayerNorm(6)
        self.widen = nn.Linear(6, 12)
        self.act = nn.GELU()
        self.head = nn.Linear(12 * 256, 5)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[2:] != (16, 16):
            raise ValueError("16×16 alone")
        last = self.act(self.widen(self.norm(self.conv(images).permute(0, 2, 3, 1))))
        scores: Tensor = self.head(last.flatten(1))
        return scores


def test_channels_last_of_one_size_are_proven_by_moving() -> None:
    model = as_model(seeded(Turned))
    listed = {info.name: info for info in layer_trace(model, (3, 16, 16)).every}
    assert [listed[name].layout for name in ("norm", "widen", "act")] == ["channels last"] * 3
    assert listed["act"].output_shape == (12, 16, 16)


class Ends(nn.Module):
    """A network whose last layer alone asks for one size, with a branch put beside another."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(3, 4, 3), nn.Conv2d(3, 4, 3)
        self.act = nn.ReLU()
        self.swapped = nn.Identity()
        self.head = nn.Linear(8 * 14 * 14, 5)

    def forward(self, images: Tensor) -> Tensor:
        both = self.act(torch.cat([self.left(images), self.right(images)], 1))
        self.swapped(both.transpose(2, 3))
        scores: Tensor = self.head(both.flatten(1))
        return scores


def test_sizes_tell_as_far_as_the_network_goes() -> None:
    model = as_model(seeded(Ends))
    listed = {info.name: info for info in layer_trace(model, (3, 16, 16)).every}
    assert listed["act"].layout == "channels first"
    assert listed["swapped"].layout == "unknown"  # columns before rows


def test_a_network_of_convolutions_runs_at_its_own_size_alone() -> None:
    sizes = []

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.act = nn.Conv2d(3, 4, 3), nn.ReLU()
            self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5)

        def forward(self, images: Tensor) -> Tensor:
            sizes.append(tuple(images.shape[2:]))
            scores: Tensor = self.head(self.pool(self.act(self.conv(images))).flatten(1))
            return scores

    layer_trace(as_model(Plain()), (3, 16, 16))
    assert set(sizes) == {(16, 16)}


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


def test_a_strip_is_a_map() -> None:
    class Strips(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.row = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, (3, 1))
            self.pool, self.mix = nn.AdaptiveAvgPool2d((None, 1)), nn.Linear(6, 6)

        def forward(self, images: Tensor) -> Tensor:
            strip: Tensor = self.row(self.pool(self.conv(images)))
            return self.mix(strip.movedim(1, -1))  # type: ignore[no-any-return]

    model = as_model(seeded(Strips))
    layouts = {info.name: info.layout for info in layer_trace(model, (3, 16, 16)).every}
    assert layouts["pool"] == layouts["row"] == "channels first"
    assert layouts["mix"] == "channels last"


def test_a_module_that_turns_a_square_is_no_map() -> None:
    class Turns(nn.Module):
        def forward(self, maps: Tensor) -> Tensor:
            return maps.transpose(2, 3)

    network = seeded(
        lambda: nn.Sequential(nn.Conv2d(3, 6, 3), Turns(), nn.GELU(), nn.Linear(14, 5))
    )
    model = as_model(network)
    layouts = [info.layout for info in layer_trace(model, (3, 16, 16)).every]
    assert layouts == ["channels first", "unknown", "unknown", "unknown"]


def test_layouts_stand_by_address() -> None:
    model = as_model(seeded(Turned))
    trace = layer_trace(model, (3, 16, 16))
    assert trace.layouts[ActivationKey("act")].order == "channels last"
    assert trace.taken[ActivationKey("widen")].order == "channels last"
    assert trace.taken[ActivationKey("conv")].batch


def test_what_a_layer_was_given_lies_as_it_was_put_out() -> None:
    model = as_model(seeded(Turned))
    cap = hookviz.capture(model, random_input(1, 16), ["norm", "widen", "conv"], inputs=True)
    (given,) = cap.inputs("widen")
    assert torch.equal(given.raw, cap["norm"].raw)
    assert torch.equal(given.values, cap["norm"].values)
    assert cap.inputs("conv")[0].layout.order == "channels first"

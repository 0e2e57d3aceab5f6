"""Where the channels are: followed through a pass, and against sizes that tell them apart."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.pooling import _MaxPoolNd
from torchvision.models import convnext, maxvit, swin_transformer
from torchvision.ops.misc import Permute

import hookviz
from hookviz.capturing.layer_trace import layer_trace, steps_after
from hookviz.capturing.layouts import Layouts
from hookviz.drawing.panels import GridPanel
from hookviz.explaining.layers.training_health import network_health
from hookviz.types import Layout, Preprocess
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import ODD, ChannelsLast, Unbatched
from tests.plain_hooks import every_output, plain_hooks


def followed(module: nn.Module, taken: Tensor, before: Layout | None = None) -> Layout | None:
    layouts = Layouts()
    if before is not None:
        layouts.take(taken, before)
    given: Tensor = (
        module(taken, 4) if isinstance(module, maxvit.WindowPartition) else module(taken)
    )
    return layouts.follow(module, taken, given)


class _OwnPool(_MaxPoolNd):
    """A person's own pooling, of no certain number of dimensions."""

    def forward(self, maps: Tensor) -> Tensor:
        return maps[..., ::2, ::2]


FIRST, LAST, VECTORS = map(Layout, ("channels first", "channels last", "vectors"))
UNBATCHED = Layout("channels first", batch=False)


@pytest.mark.parametrize(
    ("module", "shape", "before", "after"),
    [
        (nn.Conv2d(3, 1, 1), (1, 3, 8, 8), None, FIRST),
        (nn.Conv2d(3, 1, 1), (3, 8, 8), None, UNBATCHED),
        (nn.MaxPool2d(2), (1, 8, 8), None, UNBATCHED),
        (nn.AdaptiveAvgPool1d(2), (1, 3, 8), None, FIRST),
        (nn.BatchNorm2d(3).eval(), (1, 3, 8, 8), None, FIRST),
        (nn.Linear(8, 8), (1, 8, 8, 8), FIRST, VECTORS),
        (nn.Linear(8, 8), (1, 8, 8, 8), LAST, LAST),
        (nn.LayerNorm(8), (1, 8, 8, 8), None, VECTORS),
        (nn.LayerNorm(8), (1, 8, 8, 8), LAST, LAST),
        (nn.GELU(), (1, 8, 8, 8), VECTORS, VECTORS),
        (Permute([0, 2, 1, 3]), (1, 8, 8, 3), LAST, VECTORS),
        (nn.LayerNorm((3, 8, 8)), (1, 3, 8, 8), FIRST, FIRST),
        (nn.LayerNorm((3, 8, 8)), (1, 3, 8, 8), None, None),
        (nn.GELU(), (1, 8, 8, 8), LAST, LAST),
        (nn.GELU(), (1, 8, 8, 8), FIRST, FIRST),
        (nn.GELU(), (1, 8, 8, 8), None, None),
        (nn.ReLU(), (1, 8, 8), UNBATCHED, UNBATCHED),
        (nn.Dropout().eval(), (1, 8, 8, 8), LAST, LAST),
        (nn.Identity(), (1, 8, 8, 8), LAST, LAST),
        (Permute([0, 2, 3, 1]), (1, 8, 8, 8), FIRST, LAST),
        (Permute([0, 3, 1, 2]), (1, 8, 8, 8), LAST, FIRST),
        (Permute([0, 2, 1, 3]), (1, 3, 8, 8), FIRST, Layout()),
        (nn.Flatten(2), (1, 3, 8, 8), FIRST, FIRST),
        (nn.Flatten(1, 2), (1, 8, 8, 3), LAST, VECTORS),
        (nn.Flatten(2), (1, 3, 8, 8), LAST, None),
        (nn.Flatten(2), (1, 64, 8, 8), FIRST, None),
        (maxvit.WindowPartition(), (1, 3, 8, 8), FIRST, VECTORS),
        (nn.PixelShuffle(2), (1, 4, 8, 8), FIRST, None),
        (_OwnPool(2), (1, 4, 8, 8), FIRST, FIRST),
        (nn.Flatten(0), (1,), LAST, LAST),
        (nn.Unflatten(0, (2, 2)), (4,), LAST, None),
        (nn.Unflatten(0, (2, 2)), (4,), FIRST, None),
    ],
)
def test_a_layer_tells_the_layout_or_keeps_it(
    module: nn.Module, shape: tuple[int, ...], before: Layout | None, after: Layout | None
) -> None:
    assert followed(module, torch.zeros(shape), before) == after


def _convnext() -> nn.Module:
    settings = [convnext.CNBlockConfig(8, 16, 1), convnext.CNBlockConfig(16, None, 1)]
    network: nn.Module = convnext.ConvNeXt(settings, num_classes=5)
    return network


def _swin() -> nn.Module:
    network: nn.Module = swin_transformer.SwinTransformer(
        [4, 4], 8, [1, 2], [1, 2], [5, 5], num_classes=5
    )
    return network


def _maxvit() -> nn.Module:
    network: nn.Module = maxvit.MaxVit((SIDE, SIDE), 8, 5, [8], [1], 8, 0.0, num_classes=5)
    return network


def _timm(name: str, **options: Any) -> nn.Module:
    import timm  # noqa: PLC0415 - takes a second

    made: nn.Module = timm.create_model(name, num_classes=5, **options)
    return made


SIDE = 60  # maps are of 30, 15 and 7 rows; all counts of channels are multiples of 8
_SWIN: dict[str, Any] = {"embed_dim": 8, "img_size": SIDE, "window_size": 5}
NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "convnext": _convnext,
    "swin": _swin,
    "maxvit": _maxvit,
    "timm convnext": partial(_timm, "convnext_tiny", dims=(8, 16, 24, 32), depths=(1, 1, 1, 1)),
    "timm swin": partial(
        _timm, "swin_tiny_patch4_window7_224", **_SWIN, depths=(2,), num_heads=(1,)
    ),
}


def _is_places(count: int) -> bool:
    return count % 8 != 0


def _alike(shape: tuple[int, ...]) -> Iterator[bool]:
    """Whether the channels are last, by the sizes; nothing where they do not tell."""
    first, last = (_is_places(count) for count in (shape[0], shape[-1]))
    if len(shape) == 3 and first != last and _is_places(shape[1]):
        yield first


@pytest.mark.parametrize("name", NETWORKS)
def test_an_output_with_its_channels_last_is_drawn_channel_by_channel(name: str) -> None:
    model = hookviz.wrap(seeded(NETWORKS[name]), Preprocess(SIDE, SIDE))
    maps = {info.name: info for info in hookviz.list_layers(model, kind="maps")}
    found = {True: 0, False: 0}
    image = random_input(3, SIDE)
    truth = every_output(seeded(NETWORKS[name]).eval(), image)
    cap = hookviz.capture(model, image, list(maps))
    for info in maps.values():
        seen = truth[info.name][0][0]
        for is_last in _alike(tuple(seen.shape)):
            found[is_last] += 1
            assert (info.layout == "channels last") is is_last, info
            recorded = cap[info.name]
            assert torch.equal(recorded.raw, seen)
            assert torch.equal(recorded.values, seen.movedim(-1, 0) if is_last else seen)
            assert recorded.values.shape == info.output_shape
            assert hookviz.make_grid(recorded).shape == info.output_shape
    if name != "maxvit":  # whose channels are last in windows alone, which are no maps
        assert found[True] >= 5, found
    assert found[False] >= 1, found  # of a swin the first convolution alone


def test_as_many_rows_as_channels_are_followed() -> None:
    """14 rows, 14 columns and 14 channels: no shape tells them apart."""
    model = as_model(seeded(ChannelsLast).eval())
    assert [str(step) for step in steps_after(layer_trace(model, (3, 16, 16)), "conv")] == ["relu"]
    cap = hookviz.capture(model, random_input(4), [f"{ODD}.{place}" for place in range(4)])
    network = seeded(ChannelsLast).eval()
    truth = plain_hooks(network, random_input(4)).activations
    for place in range(3):
        recorded = cap[f"{ODD}.{place}"]
        assert torch.equal(recorded.raw, truth[f"{ODD}.{place}"][0])
        assert torch.equal(recorded.values, recorded.raw.permute(2, 0, 1))
        assert hookviz.make_grid(recorded).shape == (14, 14, 14)
    listed = {info.name: info.layout for info in hookviz.list_layers(model, kind="maps")}
    last = dict.fromkeys([ODD, *(f"{ODD}.{place}" for place in range(4))], "channels last")
    assert listed == {"conv": "channels first", "relu": "channels first"} | last
    shown = hookviz.run_lens("inputs", model, random_input(4), layer=f"{ODD}.1")
    values = cap[f"{ODD}.1"].raw  # of the GELU
    grid = [panel.grid for panel in shown.panels if isinstance(panel, GridPanel)][1]
    assert torch.equal(torch.from_numpy(grid.stats.maximum), values.amax((0, 1)))


def test_one_channel_without_a_batch_is_one_channel() -> None:
    network = seeded(Unbatched).eval()
    model = as_model(network)
    image = random_input(7)
    cap = hookviz.capture(model, image, ODD, inputs=True)
    with torch.no_grad():
        maps = torch.relu(network.get_submodule("conv")(image))[0]
        torch.testing.assert_close(cap[ODD].values, network.get_submodule(ODD)(maps))
        torch.testing.assert_close(cap.inputs(ODD)[0].values, maps)
    assert hookviz.make_grid(cap[ODD]).shape == (1, 14, 14)
    assert hookviz.list_layers(model)[1].output_shape == (1, 14, 14)
    ablated = hookviz.run_lens("ablate", model, image, layer=ODD, channels="0")
    assert ablated.values["after"].shape == (1, 14, 14)
    assert not ablated.values["after"].any()
    with pytest.raises(hookviz.SettingError, match="its channels are 0 to 0"):
        hookviz.run_lens("ablate", model, image, layer=ODD, channels="1")
    shown = hookviz.run_lens("inputs", model, image, layer=ODD)
    grids = [panel.grid for panel in shown.panels if isinstance(panel, GridPanel)]
    assert [grid.shape for grid in grids] == [(4, 14, 14), (1, 14, 14)]
    health = network_health(model, hookviz.prepare_input(model, image), ODD)
    assert {output.address.layer: output.units for output in health.outputs}[ODD] == 1
    pruned = hookviz.run_lens("prune-weights", model, image, layer=ODD, most=10, step=10)
    assert pruned.values["before"].shape == pruned.values["after"].shape == (1, 14, 14)

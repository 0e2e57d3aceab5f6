"""Layers of timm's transformers and hybrids, with random weights, against plain hooks."""

import copy
import importlib.util
import math
from collections import Counter
from functools import partial
from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.layer_trace import layer_trace
from hookviz.types import Activation
from tests.networks import seeded
from tests.plain_hooks import every_output

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec("timm"), reason="timm is not installed"),
    pytest.mark.filterwarnings("ignore"),  # timm's own
]

FAMILIES = (
    *("vit_tiny_patch16_224", "vit_tiny_r_s16_p8_224", "deit_tiny_patch16_224"),
    *("deit_tiny_distilled_patch16_224", "deit3_small_patch16_224", "beit_base_patch16_224"),
    *("beitv2_base_patch16_224", "eva02_tiny_patch14_224", "cait_xxs24_224"),
    *("xcit_nano_12_p16_224", "swin_tiny_patch4_window7_224", "swin_s3_tiny_224"),
    *("swinv2_tiny_window8_256", "swinv2_cr_tiny_224", "mvitv2_tiny", "pvt_v2_b0"),
    *("twins_svt_small", "twins_pcpvt_small", "levit_128s", "pit_ti_224", "coat_lite_tiny"),
    *("convit_tiny", "maxvit_tiny_rw_224", "coatnet_nano_rw_224", "maxxvit_rmlp_nano_rw_256"),
    *("mobilevit_xxs", "coat_tiny", "edgenext_xx_small", "efficientformer_l1"),
    *("efficientformerv2_s0", "fastvit_sa12", "poolformer_s12", "gcvit_xxtiny", "visformer_tiny"),
    *("volo_d1_224", "nest_tiny", "davit_tiny", "hiera_tiny_224", "tiny_vit_5m_224"),
    "mixer_s32_224",
)
_SIZES = ((64, 96), (96, 128), (224, 224))  # that are tried, so that rows are no columns


def _smallest(name: str) -> tuple[nn.Module, tuple[int, int]]:
    """The network for the smallest size that it takes."""
    create: Any = importlib.import_module("timm").create_model
    for size, is_told in product(_SIZES, (True, False)):
        options = {"img_size": size} if is_told else {}
        try:
            network = seeded(partial(create, name, num_classes=5, **options)).eval()
            with torch.no_grad():
                network(torch.zeros(1, 3, *size))
        except Exception:  # noqa: BLE001, S112 - it takes another size
            continue
        return network, size
    raise AssertionError(f"{name} takes none of the sizes")


@pytest.mark.sweep("by day small ones of three families, below")
@pytest.mark.parametrize("name", FAMILIES)
def test_every_layer_lies_as_it_says(name: str) -> None:
    network, size = _smallest(name)
    counts = check_layouts(network, size)
    assert counts["unknown"] < counts.total()  # as nearly all of a Hiera, whose tokens are unrolled


def check_layouts(network: nn.Module, size: tuple[int, int]) -> Counter[str]:
    """Hold every layer's values and layout against plain hooks; return how many lie in which way.

    Maps are as oblong as the image is, and hold the very numbers that the layer put out.
    """
    image = torch.randn(1, 3, *size, generator=torch.Generator().manual_seed(1))
    truth = every_output(copy.deepcopy(network), image)
    model = hookviz.wrap(network, example=(torch.zeros(1, 3, *size),))
    listed = layer_trace(model, (3, *size)).every
    cap = hookviz.capture(model, image, [info.name for info in listed])
    prefixes = {0, getattr(network, "num_prefix_tokens", 1)}
    counts = Counter[str]()
    for info in listed:
        recorded = next(iter(cap.calls(info.name)))
        output = truth[info.name][0]
        if isinstance(output, Tensor):
            expected = output[0] if len(output) == 1 and output.ndim > 1 else output
            assert torch.equal(recorded.raw, expected.float()), info.name
        counts[info.layout] += 1
        if info.layout in {"", "unknown"} or recorded.values.ndim != 3:  # as a map for each head
            continue
        assert recorded.values.shape == info.output_shape, info
        assert info.prefix_tokens in prefixes, info
        if "cpb_mlp" not in info.name:  # whose rows and columns are how far two cells lie apart
            assert _are_of_the_image(recorded.values.shape[1:], size), info
        assert _holds_its_numbers(recorded), info
    return counts


def _are_of_the_image(grid: tuple[int, ...], size: tuple[int, int]) -> bool:
    """Whether rows and columns are those of the image at some stride, but for a margin."""
    rows, columns = grid
    strides = [stride for stride in range(1, 129) if abs(math.ceil(size[0] / stride) - rows) <= 1]
    return rows == columns == 1 or any(
        abs(math.ceil(size[1] / stride) - columns) <= 1 for stride in strides
    )


def _holds_its_numbers(recorded: Activation) -> bool:
    """Whether each cell's numbers are the channels of one place of what the layer put out."""
    if recorded.layout.order == "channels first":
        return torch.equal(recorded.values, recorded.raw)
    channels = recorded.raw.shape[-1]
    places = {row.numpy().tobytes() for row in recorded.raw.reshape(-1, channels)}
    cells = recorded.values.flatten(1).T.contiguous()
    return all(cell.numpy().tobytes() in places for cell in cells)


def _swin(**options: Any) -> nn.Module:
    swin: Any = importlib.import_module("timm.models.swin_transformer")
    made: nn.Module = swin.SwinTransformer(
        img_size=(48, 64), embed_dim=24, depths=(2, 2), num_heads=(2, 4), num_classes=5, **options
    )
    return made.eval()


@pytest.mark.parametrize("side", [4, 5])  # five cells have to be added to
def test_a_swins_shifted_windows_are_put_back(side: int) -> None:
    swin: Any = importlib.import_module("timm.models.swin_transformer")
    network = seeded(lambda: _swin(window_size=side))
    image = torch.randn(1, 3, 48, 64)
    model = hookviz.wrap(network, example=(image,))
    names = [f"layers.0.blocks.{block}.attn.{of}" for block in (0, 1) for of in ("qkv", "proj")]
    cap = hookviz.capture(model, image, names)
    for name in names:
        recorded = cap[name]
        assert recorded.values.shape[1:] == (12, 16)
        block: Any = network.get_submodule(name.rpartition(".attn")[0])
        down, across = block.shift_size
        last = recorded.values.permute(1, 2, 0)[None].roll((-down, -across), (1, 2))
        if not 12 % side and not 16 % side:
            windows = swin.window_partition(last, (side, side)).flatten(1, 2)
            assert torch.equal(windows, recorded.raw)
    assert check_layouts(network, (48, 64))["windows"] >= 8


def test_a_strided_grid_of_a_maxvit_is_put_back() -> None:
    maxxvit: Any = importlib.import_module("timm.models.maxxvit")
    config = maxxvit.MaxxVitCfg(
        embed_dim=(32, 64),
        depths=(1, 1),
        block_type=("M", "M"),
        stem_width=32,
        transformer_cfg=maxxvit.MaxxVitTransformerCfg(window_size=(4, 4), grid_size=(4, 4)),
    )
    network = seeded(lambda: maxxvit.MaxxVit(config, img_size=(64, 96), num_classes=5)).eval()
    image = torch.randn(1, 3, 64, 96)
    name = "stages.0.blocks.0.attn_{}.attn.qkv"
    model = hookviz.wrap(network, example=(image,))
    cap = hookviz.capture(model, image, [name.format("block"), name.format("grid")])
    cuts: dict[str, Any] = {"block": maxxvit.window_partition, "grid": maxxvit.grid_partition}
    for kind, cut in cuts.items():
        recorded = cap[name.format(kind)]
        assert torch.equal(cut(recorded.values.permute(1, 2, 0)[None], (4, 4)), recorded.raw)

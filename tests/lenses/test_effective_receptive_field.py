from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import ImagePanel
from hookviz.images.samples import samples
from tests.codegen.script_cases import CONVNEXT, SHAPESNET, SQUEEZENET, ScriptCase
from tests.lenses.said import texts
from tests.networks import Tiny, as_model, random_input, seeded
from tests.pictures import picture

SCRIPTS = (
    ScriptCase({"images": ("other.png",)}, rounding=1e-6),
    ScriptCase({"layer": "stage2", "channel": 3, "images": ()}, SHAPESNET, 1e-6),
    ScriptCase({"layer": "features.3", "row": 2, "column": 3, "count": 1}, SQUEEZENET, 1e-6),
    ScriptCase(
        {"layer": "features.1.0.block.3", "row": 2, "column": 3, "count": 1}, CONVNEXT, 1e-6
    ),
)
# what a cell could see takes HookViz to follow through the network's windows
NOT_IN_SCRIPT = ("box", "share")


def photos() -> list[Path]:
    return [sample.path for sample in samples() if sample.kind == "photo"]


def plainly(
    model: hookviz.Model, layer: str, of: Callable[[Tensor], Tensor], files: list[Path], side: int
) -> np.ndarray:
    """The mean of |∂ of(maps)/∂x| over files, by a hook of torch and its autograd."""
    total = np.zeros((side, side))
    maps: list[Tensor] = []
    for file in files:
        image = hookviz.prepare_input(model, file, size=side).tensor.clone().requires_grad_()
        module = model.network.get_submodule(layer)
        handle = module.register_forward_hook(lambda *seen: maps.append(seen[2].clone()))
        model.network(image)
        handle.remove()
        (gradient,) = torch.autograd.grad(of(maps.pop()), image)
        total += gradient[0].abs().sum(0).numpy() / len(files)
    return total


@pytest.mark.parametrize(
    ("name", "layer", "side"),
    [("squeezenet", "features.4.expand3x3", 96), ("shapesnet", "stage2.first.conv", 64)],
)
def test_it_is_what_plain_autograd_gives_and_nothing_lies_outside(
    name: str, layer: str, side: int
) -> None:
    model = hookviz.load_model(name)
    result = hookviz.run_lens(
        *("effective-receptive-field", model, photos()[0]),
        size=side,
        layer=layer,
        images=photos(),
        count=4,
        channel=3,
        row=2,
        column=1,
    )
    expected = plainly(model, layer, lambda maps: maps[0, 3, 2, 1], photos()[:4], side)
    found = result.values["map"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6 * expected.max())
    assert int(result.values["images"]) == 4
    top, left, bottom, right = result.values["box"].tolist()
    outside = np.ones_like(found, bool)
    outside[top:bottom, left:right] = False
    assert outside.any()
    assert not found[outside].any(), "exactly 0 beyond what the windows reach"
    share = float(result.values["share"])
    assert share == int(result.values["pixels"]) / ((bottom - top) * (right - left))
    assert 0 < share < 1


def test_the_middle_cell_of_all_channels_is_the_default() -> None:
    model = hookviz.load_model("shapesnet")
    result = hookviz.run_lens(
        "effective-receptive-field", model, photos()[0], size=64, images=(), layer="stage2"
    )
    assert result.values["cell"].tolist() == [4, 4]  # of 8×8
    expected = plainly(model, "stage2", lambda maps: maps[0, :, 4, 4].mean(), photos()[:1], 64)
    np.testing.assert_allclose(result.values["map"], expected, rtol=1e-3, atol=1e-6)
    assert "row 4, column 4 of stage2 (all channels)" in texts(result)


def test_of_plain_convolutions_it_is_a_bell_within_its_frame() -> None:
    """Weights of one value: the field is the convolution of boxes (Luo et al., 2016, section 2)."""

    def boxes() -> nn.Module:
        network = nn.Sequential(*(nn.Conv2d(1, 1, 3, padding=1) for _ in range(4)))
        for parameter in network.parameters():
            nn.init.ones_(parameter)
        return network

    result = hookviz.run_lens(
        "effective-receptive-field", as_model(boxes()), torch.randn(1, 1, 17, 17), images=()
    )
    line = np.ones(1)
    for _ in range(4):
        line = np.convolve(line, np.ones(3))
    expected = np.zeros((17, 17))
    expected[4:13, 4:13] = np.outer(line, line)
    np.testing.assert_array_equal(result.values["map"], expected)
    assert result.values["box"].tolist() == [4, 4, 13, 13]
    shown = [panel for panel in result.panels if isinstance(panel, ImagePanel)]
    assert shown.pop().picture.shape == (9 * 53, 9 * 53, 3)
    assert len(shown) == 2
    scale = 640 / 17
    for panel in shown:  # the frame: white just outside of the box
        assert (panel.picture[round(4 * scale) - 1, 200:400] == 255).all()


def test_images_are_counted_once_and_those_that_do_not_fit_are_told_of(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.png"
    broken.write_text("no picture")
    first, other = tmp_path / "a.png", tmp_path / "b.png"
    picture(1).save(first)
    picture(2).save(other)
    others = (first, other, broken, random_input(0, 20))
    result = hookviz.run_lens("effective-receptive-field", tiny, first, images=others)
    assert int(result.values["images"]) == 2
    assert "broken.png is left out" in texts(result)
    assert "input of 3×20×20, and the one looked at is 3×16×16" in texts(result)
    alone = hookviz.run_lens("effective-receptive-field", tiny, first, images=(other,), count=1)
    assert int(alone.values["images"]) == 1


def test_a_cell_that_nothing_moves_says_so() -> None:
    class Dead(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images - 1e6)

    network = seeded(Dead)
    nn.init.constant_(network.conv1.weight, 1.0)
    model = as_model(network)
    result = hookviz.run_lens(
        "effective-receptive-field", model, picture(), layer="relu", images=()
    )
    assert "its gradient is zero everywhere" in texts(result)
    assert not [panel for panel in result.panels if isinstance(panel, ImagePanel)]
    assert float(result.values["share"]) == 0

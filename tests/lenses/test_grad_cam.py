import warnings
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import ImagePanel, OverlayPanel
from hookviz.explaining.attribution.methods import eigen_cam
from hookviz.types import Preprocess
from tests.codegen.script_cases import CONVNEXT, PVT, RESNET, SHAPESNET, SQUEEZENET, ScriptCase
from tests.lenses.said import texts
from tests.networks import as_model, random_input, seeded
from tests.pictures import picture

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"target": 1, "method": "Grad-CAM++"}, SQUEEZENET),
    ScriptCase({"target": 1, "method": "LayerCAM"}, SHAPESNET),
    ScriptCase({"method": "Eigen-CAM"}, SQUEEZENET),
    ScriptCase({"method": "Score-CAM", "top": 12}, SHAPESNET, 1e-5),  # here a mask at a time
    ScriptCase({"layer": "layer4.1.relu#1"}, RESNET),
    ScriptCase({"layer": "layer4.1.relu#1", "method": "Eigen-CAM"}, RESNET),
    ScriptCase({"layer": "features.1.0.block.3", "target": 1}, CONVNEXT),
    ScriptCase({"layer": "stages.0.blocks.0.norm1", "target": 1, "method": "Eigen-CAM"}, PVT),
)


METHODS = ("Grad-CAM", "Grad-CAM++", "LayerCAM", "Eigen-CAM", "Score-CAM")
LAYER = "stage2.second.conv"


class Pooled(nn.Module):
    """A conv layer, the mean over its map, and a linear layer with known weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.conv(images).mean((2, 3)))
        return scores


@torch.no_grad()
def test_an_in_place_relu_does_not_spoil_the_layers_output(
    tiny: hookviz.Model, noise: Tensor
) -> None:
    network: Any = tiny.network
    output = network.conv2(F.relu(network.conv1(noise)))[0]
    gradient = network.head.weight[2][:, None, None] / 49 * (output > 0)
    expected = (gradient.mean((1, 2), keepdim=True) * output).sum(0)
    result = hookviz.run_lens("grad-cam", tiny, noise, target=2)
    np.testing.assert_allclose(result.values["signed"], expected, rtol=1e-4, atol=1e-7)
    score = hookviz.run_lens("grad-cam", tiny, noise, target=2, method="Score-CAM")
    combined = np.einsum("c,chw->hw", score.values["weights"], output.numpy())
    np.testing.assert_allclose(score.values["signed"], combined, rtol=1e-4, atol=1e-6)


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def unscaled(
    method: str, network: nn.Module, layer: nn.Module, given: Tensor, target: int, **options: Any
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """pytorch-grad-cam's map before and after its scaling."""
    import pytorch_grad_cam  # noqa: PLC0415
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget  # noqa: PLC0415

    kind = {
        "Grad-CAM": pytorch_grad_cam.GradCAM,
        "Grad-CAM++": pytorch_grad_cam.GradCAMPlusPlus,
        "LayerCAM": pytorch_grad_cam.LayerCAM,
        "Eigen-CAM": pytorch_grad_cam.EigenCAM,
        "Score-CAM": pytorch_grad_cam.ScoreCAM,
    }[method]
    given, targets = given.clone().requires_grad_(), [ClassifierOutputTarget(target)]
    with warnings.catch_warnings(), kind(network, [layer], **options) as cam:
        warnings.simplefilter("ignore")
        scaled = cam(input_tensor=given, targets=targets)[0]
        kept = cam.activations_and_grads
        found = cam.get_cam_image(
            given.detach(),
            layer,
            targets,
            kept.activations[0].numpy(),
            kept.gradients[0].numpy() if kept.gradients else None,
            eigen_smooth=False,
        )
    return found[0], scaled


@pytest.mark.parametrize("name", [LAYER, "stage3"])
@pytest.mark.parametrize("method", METHODS)
def test_every_method_agrees_with_pytorch_grad_cam(
    method: str, name: str, shapes: hookviz.Model
) -> None:
    made = hookviz.prepare_input(shapes, picture(3), size=64)
    layer = dict(shapes.network.named_modules())[name]
    raw, scaled = unscaled(method, shapes.network, layer, made.tensor, 9)
    result = hookviz.run_lens(
        "grad-cam", shapes, made, layer=name, target=9, method=method, top=128
    )
    if method == "Eigen-CAM" and abs(raw.min()) > raw.max():
        raw, scaled = -raw, scaled[:0]  # a singular vector has no sign
    np.testing.assert_allclose(
        result.values["signed"], raw, rtol=1e-3, atol=1e-4 * np.abs(raw).max()
    )
    np.testing.assert_array_equal(result.values["map"], result.values["signed"].clip(0))
    if scaled.size:
        # The rest of what they do: 0…1, the input's size with the cells' middles where ours are,
        # and 0…1 again.
        positive = torch.from_numpy(result.values["map"])[None, None]
        large = F.interpolate(positive, scaled.shape, mode="bilinear")[0, 0]
        expected = (large - large.min()) / (large.max() - large.min())
        np.testing.assert_allclose(scaled, expected, atol=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_eigen_cam_has_the_sign_of_the_cell_farthest_from_zero(sign: int) -> None:
    from pytorch_grad_cam.utils.svd_on_activations import get_2d_projection_with_sign_correction  # noqa: PLC0415

    activation = sign * np.random.default_rng(2).gamma(1.0, size=(5, 6, 7)).astype(np.float32)
    found, direction = eigen_cam(activation)
    expected = get_2d_projection_with_sign_correction(activation[None])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert np.linalg.norm(direction) == pytest.approx(1, abs=1e-5)
    assert found.max() == np.abs(found).max()


def masked_scores(network: nn.Module, maps: Tensor, given: Tensor, target: int) -> Tensor:
    """What the network says of the input under each channel's mask, one by one."""
    scores = []
    for channel in maps:
        mask = nn.UpsamplingBilinear2d((given.shape[2], given.shape[3]))(channel[None, None])
        mask = (mask - mask.min()) / (mask.max() - mask.min() + 1e-8)
        scores.append(network(given * mask)[0, target])
    return torch.stack(scores)


@torch.no_grad()
def test_score_cam_tries_the_strongest_channels_and_says_so(noise: Tensor) -> None:
    network = seeded(Pooled)
    network.conv.weight[0] *= 0.01
    network.conv.weight[2] *= 10
    network.conv.weight[3] *= 5
    result = hookviz.run_lens(
        "grad-cam", as_model(network), noise, method="Score-CAM", target=0, top=2
    )
    weights = result.values["weights"]
    assert np.flatnonzero(weights).tolist() == [2, 3]
    expected = masked_scores(network, network.conv(noise)[0][2:], noise, 0).softmax(0)
    np.testing.assert_allclose(weights[2:], expected, rtol=1e-4)
    assert "the 2 of 4 channels" in texts(result, "note")


def spot() -> nn.Module:
    """One conv layer that sees how bright each 4×4 block is; the class is about brightness."""
    conv, head = nn.Conv2d(3, 2, 4, stride=4, bias=False), nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        conv.weight.fill_(1.0)
        head.weight.copy_(torch.tensor([[1.0, 1.0], [-1.0, -1.0]]))
    return nn.Sequential(conv, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head)


def test_it_is_bright_where_the_image_is_in_an_image_that_is_not_square() -> None:
    pixels = np.zeros((120, 240, 3), np.uint8)
    pixels[60:90, 120:150] = 255  # of the crop, 120×120 in the middle: its third row and column
    model = hookviz.wrap(spot(), Preprocess(16, 16, mean=(0, 0, 0), std=(1, 1, 1)))
    result = hookviz.run_lens("grad-cam", model, Image.fromarray(pixels), target=0)
    assert result.values["map"].shape == (4, 4)
    assert result.values["map"].argmax() == 2 * 4 + 2
    blocks, smooth = (panel for panel in result.panels if isinstance(panel, ImagePanel))
    assert blocks.picture.shape == (320, 640, 3)
    rows, columns = brightest(blocks.picture)
    # the image is shown 640/240 as large, so the spot is at 160…240 by 320…400
    assert 150 <= rows.min() <= rows.max() <= 250
    assert 310 <= columns.min() <= columns.max() <= 410
    assert (blocks.picture[:, :150] == 0).all()  # left of the crop the image is as it was
    assert (blocks.picture[:, 490:] == 0).all()
    assert smooth.picture.shape == blocks.picture.shape  # so that one sees what is the same place
    rows, columns = brightest(smooth.picture)
    assert 150 <= rows.min() <= rows.max() <= 250
    assert 310 <= columns.min() <= columns.max() <= 410


def test_another_class_or_method_stands_beside_it_in_the_same_colours() -> None:
    model, image = hookviz.load_model("shapesnet"), picture(3)
    alone = hookviz.run_lens("grad-cam", model, image)
    logits: Any = hookviz.capture(model, image).logits
    ranked = logits.argsort(descending=True).tolist()
    second = hookviz.run_lens("grad-cam", model, image, target=ranked[1])
    classes = hookviz.run_lens("grad-cam", model, image, beside="another class")
    np.testing.assert_array_equal(classes.values["map"], alone.values["map"])
    np.testing.assert_array_equal(classes.values["other_map"], second.values["map"])
    one, other = [panel for panel in classes.panels if isinstance(panel, OverlayPanel)][:2]
    assert one.caption == other.caption  # the same end colour
    assert one.title != other.title
    methods = hookviz.run_lens("grad-cam", model, image, beside="another method")
    plus = hookviz.run_lens("grad-cam", model, image, method="Grad-CAM++")
    np.testing.assert_array_equal(methods.values["other_map"], plus.values["map"])


def brightest(shown: NDArray[np.uint8]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    light = shown.sum(2, dtype=int)
    rows, columns = np.nonzero(light > 0.9 * light.max())
    return rows, columns


def test_its_panels_show_the_numbers(shapes: hookviz.Model) -> None:
    result = hookviz.run_lens("grad-cam", shapes, picture(), layer=LAYER, target="star")
    panels: Any = result.panels
    answer, about, blocks, smooth, grid, chart = panels
    assert answer.tone == "answer"
    assert isinstance(blocks, ImagePanel)
    assert isinstance(smooth, ImagePanel)
    scores = hookviz.capture(shapes, picture())
    chance = dict(scores.predictions(len(shapes.categories)))["star"]
    assert about.text.startswith("star: score ")
    assert f"{100 * chance:.1f} %" in about.text
    assert grid.grid.shape == (1, *result.values["map"].shape)
    assert grid.grid.limits.low[0] == 0  # as on the overlay
    assert grid.grid.limits.high[0] == pytest.approx(result.values["map"].max())
    weights = result.values["weights"]
    np.testing.assert_allclose(
        chart.series["weight"], weights[[int(label) for label in chart.labels]], rtol=1e-6
    )
    assert abs(chart.series["weight"][0]) == np.abs(weights).max()


@pytest.mark.parametrize("method", ["Grad-CAM", "Eigen-CAM"])
def test_layers_without_maps_are_refused(method: str) -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.maps = nn.Conv2d(3, 4, 3, padding=1)
            self.parts = nn.Conv2d(4, 4, 3)
            self.rows = nn.Conv1d(4, 4, 3)

        def forward(self, images: Tensor) -> Tensor:
            found = self.maps(images)
            parts = self.parts(torch.cat([found[..., :8], found[..., 8:]])).mean((0, 2, 3))
            scores: Tensor = self.rows(found.flatten(2)).mean(2) + parts[None]
            return scores

    model = as_model(seeded(Rows))
    with pytest.raises(hookviz.HookVizError, match=r"'rows' .*1×4×254.* 'maps'"):
        hookviz.run_lens(
            "grad-cam", model, random_input(0), method=method, layer="rows"
        )  # the last conv layer
    with pytest.raises(hookviz.HookVizError, match=r"'parts' .*2×4×14×6"):
        hookviz.run_lens("grad-cam", model, random_input(0), method=method, layer="parts")
    hookviz.run_lens("grad-cam", model, random_input(0), method=method, layer="maps")


def test_a_dead_layer_is_said_to_be_dead_with_one_that_works(noise: Tensor) -> None:
    class Branches(Pooled):
        def __init__(self) -> None:
            super().__init__()
            self.dead = nn.Conv2d(3, 4, 3, bias=False)

        def forward(self, images: Tensor) -> Tensor:
            found = self.conv(images) + 0 * self.dead(images)
            scores: Tensor = self.head(found.mean((2, 3)))
            return scores

    result = hookviz.run_lens("grad-cam", as_model(seeded(Branches)), noise)
    assert result.chosen["layer"] == "dead"
    assert not result.values["map"].any()
    assert "zero everywhere at this layer. At 'conv' it is not." in texts(result, "note")


def test_methods_without_gradients_work_where_there_are_none(noise: Tensor) -> None:
    class Detached(Pooled):
        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.head(self.conv(images).mean((2, 3)).detach())
            return scores

    model = as_model(seeded(Detached))
    with pytest.raises(hookviz.HookVizError, match="cuts the gradient"):
        hookviz.run_lens("grad-cam", model, noise)
    for method in ("Eigen-CAM", "Score-CAM"):
        assert hookviz.run_lens("grad-cam", model, noise, method=method).values["map"].any()


@pytest.mark.parametrize("slug", ["grad-cam", "saliency", "gradients"])
def test_values_that_are_no_numbers_are_shown_as_such(slug: str, noise: Tensor) -> None:
    network = seeded(Pooled)
    with torch.no_grad():
        network.head.weight[1, 0] = torch.nan
    result = hookviz.run_lens(slug, as_model(network), noise, target=1)
    assert np.isnan(next(iter(result.values.values()))).any()

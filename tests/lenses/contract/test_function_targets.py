"""What is asked of an output by a function, beside pytorch-grad-cam and captum."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients, Saliency
from torch import Tensor, nn
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

import hookviz
from hookviz.errors import SettingError
from hookviz.types import Preprocess
from tests.networks import Tiny, as_model, random_input, seeded
from tests.other_libraries import ultralytics

STEPS = Preprocess(resize=16, crop=16)


class Segmenting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, 2, 1)
        self.up = nn.ConvTranspose2d(6, 3, 2, 2)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        return {"out": self.up(self.down(images).relu())}


class OneNumber(Tiny):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images)[:, 1]


def in_region(output: Any) -> Tensor:
    region: Tensor = output["out"][:, 2, 4:12, 4:12].sum((1, 2))
    return region


def detector() -> nn.Module:
    options = {"num_classes": 4, "box_score_thresh": 0.0}
    network: nn.Module = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, **options
    )
    return network


def a_picture() -> Tensor:
    return torch.rand(1, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def grad_cam_of(
    network: nn.Module, layer: str, image: Tensor, target: Callable[[Any], Tensor]
) -> Any:
    """Grad-CAM of one image by its definition (Selvaraju et al., 2017), with plain hooks."""
    kept: list[Tensor] = []

    def keep(_module: nn.Module, _inputs: object, output: Tensor) -> Tensor:
        kept.append(output)
        return output.clone()  # the next layer may write into it

    handle = network.get_submodule(layer).register_forward_hook(keep)
    value = target(network(image)).sum()
    handle.remove()
    (gradient,) = torch.autograd.grad(value, kept)
    weights = gradient.mean((2, 3), keepdim=True)
    return (weights * kept[0]).sum(1).relu()[0].detach().numpy()


@pytest.mark.parametrize(
    ("build", "layer", "target"),
    [
        (Segmenting, "down", in_region),
        (OneNumber, "conv2", lambda out: out),
        (Tiny, "conv2", lambda out: torch.cosine_similarity(out, torch.ones(1, 5))),
    ],
)
def test_grad_cam_and_saliency_are_of_the_function(
    build: Callable[[], nn.Module], layer: str, target: Callable[[Any], Tensor]
) -> None:
    network, image = seeded(build).eval(), random_input(1)
    result = hookviz.run_lens(
        "grad-cam", hookviz.wrap(network, STEPS), image, layer=layer, target=target
    )
    expected = grad_cam_of(network, layer, image, target)
    np.testing.assert_allclose(result.values["map"], expected, atol=1e-6 * expected.max())
    assert float(result.values["score"]) == pytest.approx(
        float(target(network(image)).sum().detach())
    )
    saliency = hookviz.run_lens("saliency", network, image, target=target)
    theirs = Saliency(lambda images: target(network(images)).reshape(1)).attribute(
        image.clone().requires_grad_(), abs=False
    )
    np.testing.assert_allclose(saliency.values["attribution"], theirs[0], atol=1e-6)


def test_integrated_gradients_ask_the_function_of_each_step() -> None:
    network, image = seeded(Segmenting).eval(), random_input(1)

    def target(output: Any) -> Tensor:
        mean: Tensor = output["out"][:, 2].mean()
        return mean

    ours = hookviz.run_lens("integrated-gradients", network, image, target=target, steps=256)
    theirs = IntegratedGradients(
        lambda images: network(images)["out"][:, 2].mean((1, 2))
    ).attribute(image, n_steps=256)
    np.testing.assert_allclose(ours.values["attribution"], theirs[0], rtol=1e-2, atol=1e-6)


def test_occlusion_hides_parts_from_the_function() -> None:
    network, image = seeded(Segmenting).eval(), random_input(1)
    settings: dict[str, Any] = {"window": 4, "stride": 4, "baseline": "zero"}
    result = hookviz.run_lens("occlusion", network, image, target=in_region, **settings)
    hidden = image.clone()
    hidden[:, :, 4:8, 8:12] = 0
    with torch.no_grad():
        fall = float(in_region(network(image)) - in_region(network(hidden)))
    assert result.values["drops"][1, 2] == pytest.approx(fall, rel=1e-4)


def test_a_class_of_maps_is_its_mean_over_the_pixels() -> None:
    network, image = seeded(Segmenting).eval(), random_input(1)
    by_number = hookviz.run_lens("grad-cam", network, image, layer="down", target=2)
    by_function = hookviz.run_lens(
        "grad-cam", network, image, layer="down", target=lambda out: out["out"][:, 2].mean()
    )
    np.testing.assert_allclose(by_number.values["map"], by_function.values["map"], atol=1e-7)


class Read(nn.Module):
    """A network whose output is read, as pytorch-grad-cam wants one tensor or list of it."""

    def __init__(self, network: nn.Module, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self.network, self.read = network, read

    def forward(self, images: Tensor) -> Any:
        return self.read(self.network(images))


def expect_as_pytorch_grad_cam(
    network: nn.Module, layer: str, read: Callable[[Any], Any], target: Callable[[Any], Tensor]
) -> None:
    """Compare Grad-CAM of `target`, of what is read of one image, scaled as it scales.

    It adds 1e-7 to what it divides by: the target has to be large enough.
    """
    import pytorch_grad_cam  # noqa: PLC0415

    image = a_picture()
    modules = [network.get_submodule(layer)]
    with pytorch_grad_cam.GradCAM(Read(network, read), modules) as cam:
        theirs = cam(input_tensor=image.clone().requires_grad_(), targets=[target])[0]
    asked = hookviz.run_lens(
        "grad-cam", network, image, layer=layer, target=lambda out: target(read(out)[0])
    )
    ours = torch.from_numpy(asked.values["map"])[None, None]
    large = nn.functional.interpolate(ours, (64, 64), mode="bilinear")[0, 0]
    assert theirs.max() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(
        theirs, (large - large.min()) / (large.max() - large.min()), atol=1e-3
    )


@pytest.mark.by_day
def test_a_box_is_asked_about_by_pytorch_grad_cams_own_target() -> None:
    """It adds to the box's score how far it overlaps the box that was asked for."""
    from pytorch_grad_cam.utils.model_targets import FasterRCNNBoxScoreTarget  # noqa: PLC0415

    network, image = seeded(detector).eval(), a_picture()
    with torch.no_grad():
        found = network(image)[0]
    best = FasterRCNNBoxScoreTarget(found["labels"][:1], found["boxes"][:1].numpy())
    layer = "backbone.fpn.layer_blocks.0.0"
    expect_as_pytorch_grad_cam(network, layer, lambda out: out, lambda out: 1e6 * best(out))


@pytest.mark.parametrize(
    ("family", "config", "layer", "target"),
    [
        ("ClassificationModel", "yolov8n-cls.yaml", "model.8", lambda out: 1e9 * out[3]),
        ("DetectionModel", "yolov8n.yaml", "model.15", lambda out: 1e15 * out[4:].max()),
    ],
)
def test_yolo_is_asked_about_a_class_and_a_box(
    family: str, config: str, layer: str, target: Callable[[Any], Tensor]
) -> None:
    network = seeded(lambda: ultralytics(family, config)).eval()
    expect_as_pytorch_grad_cam(network, layer, lambda out: out[0], target)


@pytest.mark.parametrize("slug", ["ablate", "channels-that-matter", "gradient-flow"])
def test_other_lenses_take_a_function_too(slug: str) -> None:
    network, image = seeded(Segmenting).eval(), random_input(1)
    result = hookviz.run_lens(slug, network, image, target=in_region)
    assert "%" not in "".join(getattr(panel, "text", "") for panel in result.panels)


def test_eigen_cam_asks_for_no_class() -> None:
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(2))
    result = hookviz.run_lens("grad-cam", network, random_input(1), method="Eigen-CAM")
    assert result.values["map"].shape == (14, 14)
    assert "score" not in result.values
    settings: list[dict[str, Any]] = [{}, {"target": 1}]
    for chosen in settings:
        with pytest.raises(hookviz.ModelError, match="no row of scores"):
            hookviz.run_lens("grad-cam", network, random_input(1), **chosen)


def test_a_function_of_several_numbers_is_refused() -> None:
    model, image = as_model(seeded(Tiny)), random_input(0)
    for look in (
        lambda target: hookviz.saliency(model, image, target=target),
        lambda target: hookviz.run_lens("grad-cam", model, image, target=target),
        lambda target: hookviz.patch(model, image, random_input(1), target=target),
    ):
        with pytest.raises(SettingError, match=r"<lambda> returns 5 numbers .* one is asked about"):
            look(lambda out: out)

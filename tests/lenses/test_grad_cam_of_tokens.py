"""Class activation maps of tokens and of channels last, as pytorch-grad-cam makes them.

It is told by a person where rows, columns and channels are, in a `reshape_transform`; those here
are the ones of its examples (`vit_example.py` and `swinT_example.py`), for fewer patches.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import TextPanel
from tests import small_transformers
from tests.networks import random_input, seeded
from tests.small_transformers import SIDE, as_model, put_out


def tokens_behind(others: int, side: int = 4) -> Callable[[Tensor], Tensor]:
    def reshape(tensor: Tensor) -> Tensor:
        result = tensor[:, others:, :].reshape(tensor.size(0), side, side, tensor.size(2))
        return result.transpose(2, 3).transpose(1, 2)

    return reshape


def channels_last(tensor: Tensor) -> Tensor:
    return tensor.transpose(2, 3).transpose(1, 2)


CASES = {
    "ViT": (small_transformers.vit, "blocks.1.norm1", tokens_behind(1)),
    "ViT by torchvision": (
        small_transformers.torchvision_vit,
        "encoder.layers.encoder_layer_1.ln_1",
        tokens_behind(1),
    ),
    "DeiT": (small_transformers.deit, "blocks.1.norm1", tokens_behind(2)),
    "Swin": (small_transformers.swin, "layers.1.blocks.1.norm1", channels_last),
    "Swin's tokens": (small_transformers.swin, "layers.1.blocks.1.norm2", tokens_behind(0, 8)),
    "Swin by torchvision": (
        small_transformers.torchvision_swin,
        "features.3.1.norm1",
        channels_last,
    ),
}
METHODS = {
    "Grad-CAM": "GradCAM",
    "Grad-CAM++": "GradCAMPlusPlus",
    "LayerCAM": "LayerCAM",
    "Eigen-CAM": "EigenCAM",
    "Score-CAM": "ScoreCAM",
}


@pytest.mark.parametrize("case", CASES)
def test_every_method_agrees_with_pytorch_grad_cam(case: str) -> None:
    import pytorch_grad_cam  # noqa: PLC0415
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget  # noqa: PLC0415

    build, name, reshape = CASES[case]
    network, image = seeded(build).eval(), random_input(3, SIDE)
    model, targets = as_model(network), [ClassifierOutputTarget(2)]
    for method, kind in METHODS.items():
        with (
            warnings.catch_warnings(),
            getattr(pytorch_grad_cam, kind)(
                model=network,
                target_layers=[network.get_submodule(name)],
                reshape_transform=reshape,
            ) as cam,
        ):
            warnings.simplefilter("ignore")
            given = image.clone().requires_grad_()
            cam(input_tensor=given, targets=targets)
            kept = cam.activations_and_grads
            (theirs,) = cam.get_cam_image(
                given.detach(),
                network.get_submodule(name),
                targets,
                kept.activations[0].numpy(),
                kept.gradients[0].numpy() if kept.gradients else None,
                eigen_smooth=False,
            )
        found = hookviz.run_lens(
            "grad-cam", model, image, layer=name, target=2, method=method, top=4096
        ).values["signed"]
        if method == "Eigen-CAM" and abs(theirs.min()) > theirs.max():
            theirs = -theirs  # a singular vector has no sign
        least = 1e-4 if method == "Score-CAM" else 1e-5  # which runs batches of another size
        np.testing.assert_allclose(found, theirs, rtol=0, atol=least * np.abs(theirs).max())


@pytest.mark.parametrize(
    ("build", "begins"),
    [
        (small_transformers.vit, "blocks.0"),
        (small_transformers.torchvision_vit, "encoder.layers.encoder_layer_0"),
        (lambda: small_transformers.vit(depth=1), "patch_embed.proj"),
        (small_transformers.swin, "norm"),
    ],
)
def test_it_begins_at_the_last_tokens_that_others_still_look_at(
    build: Callable[[], nn.Module], begins: str
) -> None:
    """Behind the last block the class token alone is read: no patch there speaks for a class."""
    model = as_model(seeded(build))
    result = hookviz.run_lens("grad-cam", model, random_input(3, SIDE))
    assert result.chosen["layer"] == begins
    assert result.values["signed"].any()


def test_of_tokens_that_nobody_reads_it_says_so_and_names_those_that_are_read() -> None:
    network, image = seeded(small_transformers.vit), random_input(3, SIDE)
    result = hookviz.run_lens("grad-cam", as_model(network), image, layer="blocks.1", target=2)
    assert not result.values["signed"].any()
    notes = [panel.text for panel in result.panels if isinstance(panel, TextPanel)]
    assert any("zero everywhere at this layer. At 'blocks.0' it is not." in note for note in notes)


def test_the_gradient_lens_shows_the_gradient_where_the_cells_are() -> None:
    network: Any = seeded(small_transformers.deit).eval()
    image = random_input(3, SIDE)
    _, given = put_out(network, "blocks.0", image)
    tokens = network.norm(network.blocks[1](given.requires_grad_()))
    score = (network.head(tokens[:, 0]) + network.head_dist(tokens[:, 1]))[0, 2] / 2
    (gradient,) = torch.autograd.grad(score, given)
    expected = gradient[0, 2:].T.reshape(24, 4, 4)  # without the tokens of class and distillation
    result = hookviz.run_lens("gradients", as_model(network), image, layer="blocks.0", target=2)
    np.testing.assert_allclose(result.values["gradient"], expected, atol=1e-7)

"""Class activation maps of tokens and of channels last, as pytorch-grad-cam makes them.

It is told by a person where rows, columns and channels are, in a `reshape_transform`; those here
are the ones of its examples (`vit_example.py` and `swinT_example.py`), for fewer patches.
"""

from collections.abc import Callable

import numpy as np
import pytest
from torch import Tensor, nn

import hookviz
from tests import small_transformers
from tests.lenses.test_grad_cam import METHODS, unscaled
from tests.networks import random_input, seeded
from tests.small_transformers import SIDE, as_model


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


@pytest.mark.parametrize("case", CASES)
def test_every_method_agrees_with_pytorch_grad_cam(case: str) -> None:
    build, name, reshape = CASES[case]
    network, image = seeded(build).eval(), random_input(3, SIDE)
    model, layer = as_model(network), network.get_submodule(name)
    for method in METHODS:
        theirs, _ = unscaled(method, network, layer, image, 2, reshape_transform=reshape)
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

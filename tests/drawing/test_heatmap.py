"""A map of numbers on the image where its cells look, and for print."""

import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.images.samples import samples

STAR = next(each.path for each in samples() if each.name == "star")


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_a_map_lies_on_the_image_where_its_cells_look(shapes: hookviz.Model) -> None:
    cam = hookviz.grad_cam(shapes, STAR, target="star")
    plain, full = (np.asarray(cam.overlay(opacity=share)) for share in (0.0, 1.0))
    assert plain.shape == full.shape == (640, 640, 3)
    row, column = np.unravel_index(cam.values.argmax(), cam.values.shape)
    middle = tuple(int((at + 0.5) * 640 / 8) for at in (row, column))
    assert full[middle].tolist() == pytest.approx([252, 255, 164], abs=2)  # inferno's end
    paper = cam.figure(width_cm=8.5)
    assert paper.get_figwidth() == pytest.approx(8.5 / 2.54)
    assert paper.axes[0].get_title() == cam.title
    assert paper.axes[1].get_ylim() == pytest.approx(cam.limits)
    found = hookviz.integrated_gradients(shapes, STAR, steps=3)
    low, high = found.limits
    assert (found.values < 0).any()
    assert (found.colormap, low) == ("RdBu_r", -high)


def test_sound_has_a_map_and_no_overlay() -> None:
    network = nn.Sequential(
        nn.Conv1d(1, 4, 9), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    found = hookviz.saliency(network, torch.randn(1, 1, 200))
    assert found.values.shape == (200,)
    assert found.figure(dpi=50).axes
    with pytest.raises(HookVizError, match="no rows and columns"):
        found.overlay()

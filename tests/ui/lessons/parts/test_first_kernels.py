import numpy as np
from torch import nn

import hookviz
from hookviz.ui.lessons.parts.first_kernels import PART, first_kernels, in_colour, kernel_sheet
from tests.lessons.conftest import scene_of
from tests.ui.lessons.parts.scenes import star, untrained, with_defaults


def test_they_are_the_models_weights_and_random_ones() -> None:
    ours, began = (
        dict(scene.model.network.named_parameters())["stem.first.conv.weight"].detach().numpy()
        for scene in (star(), untrained())
    )
    kernels = first_kernels(star())
    np.testing.assert_array_equal(kernels.after, ours)
    np.testing.assert_array_equal(kernels.before, began)
    facts = PART.facts(star(), with_defaults(PART))
    assert (facts["count"], facts["numbers"]) == (32, 147)
    assert facts["all"] == sum(each.numel() for each in star().model.network.parameters())
    kernels = first_kernels(untrained())
    assert kernels.before is None
    np.testing.assert_array_equal(kernels.after, began)


def test_grey_is_zero_and_the_largest_weight_is_at_an_end() -> None:
    kernel = np.zeros((2, 3, 2, 2), np.float32)
    kernel[0, 0, 0, 0], kernel[0, 2, 1, 1] = 4, -2
    pixels = in_colour(kernel)
    assert pixels.shape == (2, 2, 2, 3)
    assert pixels[0, 0, 0].tolist() == [255, 128, 128]
    assert pixels[0, 1, 1].tolist() == [128, 128, 64]
    assert (pixels[1] == 128).all()
    sheet = kernel_sheet(pixels, 2, magnify=1, gap=1)
    assert sheet.shape == (2, 2 + 1 + 2, 4)
    np.testing.assert_array_equal(sheet[:, :2, :3], pixels[0])
    assert not sheet[:, 2].any()
    kernel[0, 1] = np.nan  # of a training that went too far
    assert in_colour(kernel)[0, 0, 0].tolist() == [255, 128, 128]


def test_of_kernels_of_other_inputs_than_three_the_first_is_shown_in_grey() -> None:
    conv = nn.Conv2d(1, 4, 3)
    network = nn.Sequential(conv, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    scene = scene_of(hookviz.wrap(network), "star")
    kernels = first_kernels(scene)
    assert kernels.inputs == 1
    weights = conv.weight.detach().numpy()
    for colour in range(3):
        np.testing.assert_array_equal(kernels.after[:, colour], weights[:, 0])
    assert kernels.before is not None
    assert kernels.before.shape == kernels.after.shape

from collections.abc import Callable

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons.kernels import PRESETS
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.pictures import grey_of
from hookviz.ui.lessons.parts.kernel import (
    PART,
    SIDE,
    EditedKernel,
    offered,
    own_kernels,
    read_kernel,
    written_kernel,
)
from tests.lessons.conftest import scene_of
from tests.networks import as_model


def test_facts_are_those_of_the_map(scene: LessonScene, options_of: Callable[..., Options]) -> None:
    from scipy.signal import correlate2d  # noqa: PLC0415

    facts = PART.facts(scene, options_of("kernel", kernel="vertical", padding="1", stride="2"))
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    made = correlate2d(np.pad(grey_of(scene, SIDE), 1), sobel, "valid")[::2, ::2]
    assert (facts["rows"], facts["columns"]) == made.shape == (48, 48)
    assert facts["highest"] == pytest.approx(made.max(), abs=1e-5)
    assert facts["lowest"] == pytest.approx(made.min(), abs=1e-5)
    assert (facts["rows_at_stride_1"], facts["rows_at_stride_2"]) == (96, 48)
    assert facts["rows_without_padding"] == 47
    assert facts["sum"] == 0
    assert (facts["weight_2_1"], facts["weight_2_3"]) == (-2, 2)


def test_the_networks_own_kernel_acts_on_grey_as_the_layer_does(
    scene: LessonScene, options_of: Callable[..., Options]
) -> None:
    """A grey picture has the same number three times, so the layer's slices add up."""
    from scipy.signal import correlate2d  # noqa: PLC0415

    layer, kernels = own_kernels(scene)
    grey = np.random.default_rng(1).random((9, 9))
    conv = dict(scene.model.network.named_modules())[layer]
    weight = conv.weight.detach().numpy()
    whole = sum(correlate2d(grey, each, "valid") for each in weight[5])
    np.testing.assert_allclose(correlate2d(grey, np.array(kernels[5]), "valid"), whole, atol=1e-5)
    facts = PART.facts(scene, options_of("kernel", kernel="layer", channel="5"))
    assert facts["weight_1_1"] == pytest.approx(weight[5, :, 0, 0].sum(), abs=1e-6)


def test_networks_whose_kernels_can_not_be_shown_say_so(options_of: Callable[..., Options]) -> None:
    large = scene_of(as_model(nn.Sequential(nn.Conv2d(3, 2, 11, padding=5))))
    with pytest.raises(HookVizError, match="no kernels of up to 7 numbers"):
        PART.facts(large, options_of("kernel", kernel="layer"))
    assert PART.facts(large, options_of("kernel"))["side"] == 3  # those made by hand work


def test_a_lesson_says_which_kernels_are_offered(options_of: Callable[..., Options]) -> None:
    assert offered(options_of("kernel")) == (*PRESETS, "layer")
    assert offered(options_of("kernel", offer="copy, blur")) == ("copy", "blur")
    option = next(each for each in PART.options if each.name == "offer")
    assert not option.check("copy, layer")
    assert "'blur'" in option.check("copy, blurr")


def test_the_kernels_are_those_that_a_model_computes_with() -> None:
    conv = nn.Conv2d(3, 2, 3)
    pruned = hookviz.prune(as_model(nn.Sequential(conv)), 0.5, "channels by L1 norm")
    _, kernels = own_kernels(scene_of(pruned))
    assert [bool(np.any(kernel)) for kernel in kernels].count(False) == 1
    assert bool(conv.weight.any((1, 2, 3)).all())


OWN = ((1.0, -2.5, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 0.125))


def test_a_kernel_is_read_as_it_was_written() -> None:
    edited = EditedKernel(OWN, 2, 1, "")
    assert read_kernel(written_kernel(edited), PRESETS) == edited
    name, kernel = next(iter(PRESETS.items()))
    preset = EditedKernel(kernel, 1, 0, name)
    assert read_kernel(written_kernel(preset), PRESETS) == preset


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "[1,2,3,4]",
        '[[[1,2],[3]],1,0,""]',
        '[[[1e9]],1,0,""]',
        '[[["x"]],1,0,""]',
        '[[],1,0,"nobody\'s"]',
        '[[[1]],9,0,""]',
        '[[[1]],1,0,{"a":1}]',
        "[" * 5000,
    ],
)
def test_any_other_text_is_no_kernel(text: str) -> None:
    assert read_kernel(text, PRESETS) is None


@pytest.mark.parametrize("weight", [1_000_000.0, -1_000_000.0, 123_456.0, 0.001234567])
def test_a_weight_counts_as_it_was_typed(weight: float) -> None:
    kernel = ((weight, 0.0, 0.0), *OWN[1:])
    read = read_kernel(written_kernel(EditedKernel(kernel, 1, 0, "")), PRESETS)
    assert read is not None
    assert read.kernel[0][0] == weight


def test_a_large_kernel_fits_into_a_link() -> None:
    kernel = tuple(
        tuple(-1.23456789 / (1 + row + column) for column in range(7)) for row in range(7)
    )
    assert len(written_kernel(EditedKernel(kernel, 1, 0, ""))) < 600

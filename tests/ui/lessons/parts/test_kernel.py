import numpy as np
import pytest
from scipy.signal import correlate2d
from torch import nn

import hookviz
from hookviz.errors import HookVizError
from hookviz.lessons.kernels import PRESETS
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
from tests.ui.lessons.parts.scenes import photograph, with_defaults


def test_facts_are_those_of_the_map() -> None:
    options = with_defaults(PART, kernel="vertical", padding="1", stride="2")
    facts = PART.facts(photograph(), options)
    sobel = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]])
    made = correlate2d(np.pad(grey_of(photograph(), SIDE), 1), sobel, "valid")[::2, ::2]
    assert (facts["rows"], facts["columns"]) == made.shape == (48, 48)
    assert facts["highest"] == pytest.approx(made.max(), abs=1e-5)
    assert facts["lowest"] == pytest.approx(made.min(), abs=1e-5)
    assert (facts["rows_at_stride_1"], facts["rows_at_stride_2"]) == (96, 48)
    assert facts["rows_without_padding"] == 47
    assert (facts["sum"], facts["weight_2_1"], facts["weight_2_3"]) == (0, -2, 2)


def test_the_networks_own_kernel_acts_on_grey_as_the_layer_does() -> None:
    """A grey picture has the same number three times, so the layer's slices add up."""
    layer, kernels = own_kernels(photograph())
    grey = np.random.default_rng(1).random((9, 9))
    weight = photograph().model.network.get_submodule(layer).weight.detach().numpy()  # type: ignore[operator]
    whole = sum(correlate2d(grey, each, "valid") for each in weight[5])
    np.testing.assert_allclose(correlate2d(grey, np.array(kernels[5]), "valid"), whole, atol=1e-5)
    facts = PART.facts(photograph(), with_defaults(PART, kernel="layer", channel="5"))
    assert facts["weight_1_1"] == pytest.approx(weight[5, :, 0, 0].sum(), abs=1e-6)


def test_networks_whose_kernels_can_not_be_shown_say_so() -> None:
    large = scene_of(as_model(nn.Sequential(nn.Conv2d(3, 2, 11, padding=5))))
    with pytest.raises(HookVizError, match="no kernels of up to 7 numbers"):
        PART.facts(large, with_defaults(PART, kernel="layer"))
    assert PART.facts(large, with_defaults(PART))["side"] == 3  # those made by hand work


def test_a_lesson_says_which_kernels_are_offered() -> None:
    assert offered(with_defaults(PART)) == (*PRESETS, "layer")
    assert offered(with_defaults(PART, offer="copy, blur")) == ("copy", "blur")
    option = next(each for each in PART.options if each.name == "offer")
    assert not option.check("copy, layer")
    assert "'blur'" in option.check("copy, blurr")


def test_the_kernels_are_those_that_a_model_computes_with() -> None:
    conv = nn.Conv2d(3, 2, 3)
    pruned = hookviz.prune(as_model(nn.Sequential(conv)), 0.5, "channels by L1 norm")
    _, kernels = own_kernels(scene_of(pruned))
    assert [bool(np.any(kernel)) for kernel in kernels].count(False) == 1
    assert bool(conv.weight.any((1, 2, 3)).all())


def test_a_kernel_is_read_as_it_was_written() -> None:
    name, preset = next(iter(PRESETS.items()))
    typed = ((1_000_000.0, -2.5, 0.0), (-1_000_000.0, 123_456.0, 0.0), (0.0, 0.0, 0.001234567))
    for kernel in (EditedKernel(typed, 2, 1, ""), EditedKernel(preset, 1, 0, name)):
        assert read_kernel(written_kernel(kernel), PRESETS) == kernel
    large = tuple(tuple(-1.23456789 / (1 + r + c) for c in range(7)) for r in range(7))
    assert len(written_kernel(EditedKernel(large, 1, 0, ""))) < 600


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

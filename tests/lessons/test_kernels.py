"""Against SciPy, which computes the same by code of its own."""

import numpy as np
import pytest

from hookviz.lessons.kernels import (
    PRESETS,
    TITLES,
    fraction_text,
    kernel_call,
    output_length,
    same_size_map,
)

GREY = np.random.default_rng(3).random((21, 17), np.float32)


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (3, 1), (2, 3)])
def test_a_map_is_the_correlation_with_the_kernel(name: str, stride: int, padding: int) -> None:
    from scipy.signal import correlate2d  # noqa: PLC0415

    call = kernel_call(GREY, PRESETS[name], stride, padding)
    padded = np.pad(GREY, padding)
    expected = correlate2d(padded, np.array(PRESETS[name]), "valid")[::stride, ::stride]
    np.testing.assert_allclose(call.output[0].numpy(), expected, atol=1e-5)
    assert call.output.shape[1:] == (
        output_length(21, 3, stride, padding),
        output_length(17, 3, stride, padding),
    )
    np.testing.assert_array_equal(call.input[0].numpy(), GREY)


def test_kernels_do_what_they_are_called() -> None:
    edge = np.zeros((9, 9), np.float32)
    edge[:, 5:] = 1
    across, along = (
        kernel_call(edge, PRESETS[name], 1, 0).output for name in ("vertical", "horizontal")
    )
    assert float(across.max()) == 4
    assert float(along.abs().max()) == 0
    np.testing.assert_allclose(np.array(PRESETS["blur"]).sum(), 1)
    np.testing.assert_allclose(kernel_call(GREY, PRESETS["copy"], 1, 1).output[0].numpy(), GREY)
    assert TITLES.keys() == PRESETS.keys()


def test_a_map_as_large_as_its_picture_sees_no_edge_in_the_frame() -> None:
    from scipy.ndimage import correlate  # noqa: PLC0415

    grey = np.random.default_rng(5).random((9, 14)).astype(np.float32)
    for kernel in PRESETS.values():
        expected = correlate(grey, np.array(kernel), mode="nearest")
        np.testing.assert_allclose(same_size_map(kernel, grey), expected, atol=1e-5)
    even = np.full((6, 6), 0.7, np.float32)
    assert np.abs(same_size_map(PRESETS["vertical"], even)).max() < 1e-6


def test_weights_are_written_as_people_write_them() -> None:
    assert [fraction_text(weight) for weight in (-2.0, 0.0, 1 / 9, 0.5)] == [
        "−2",
        "0",
        "1/9",
        "1/2",
    ]

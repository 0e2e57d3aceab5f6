"""Against SciPy, which computes the same by code of its own."""

import re

import numpy as np
import pytest

from hookviz.lessons.kernels import (
    PRESETS,
    TITLES,
    ChangedWeight,
    Kernel,
    changed_weight,
    effect_words,
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


def test_kernels_do_what_they_are_called_and_the_weight_that_differs_is_found() -> None:
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
    sobel = PRESETS["vertical"]
    assert changed_weight(sobel, with_weight(sobel, 1, 0, -1)) == ChangedWeight(1, 0, -2)
    assert changed_weight(sobel, sobel) is None
    assert changed_weight(sobel, PRESETS["blur"]) is None
    assert changed_weight(sobel, ((1.0,),)) is None


def test_a_map_as_large_as_its_picture_sees_no_edge_in_the_frame() -> None:
    from scipy.ndimage import correlate  # noqa: PLC0415

    grey = np.random.default_rng(5).random((9, 14)).astype(np.float32)
    for kernel in PRESETS.values():
        expected = correlate(grey, np.array(kernel), mode="nearest")
        np.testing.assert_allclose(same_size_map(kernel, grey), expected, atol=1e-5)
    even = np.full((6, 6), 0.7, np.float32)
    assert np.abs(same_size_map(PRESETS["vertical"], even)).max() < 1e-6


def test_weights_and_what_they_do_are_in_words() -> None:
    assert [fraction_text(weight) for weight in (-2.0, 0.0, 1 / 9, 0.5)] == [
        "−2",
        "0",
        "1/9",
        "1/2",
    ]
    kernel = with_weight(((0.0,) * 5,) * 5, 3, 1, 1_000_000)
    flat = np.zeros((2, 2), np.float32)
    words = effect_words(kernel, ChangedWeight(3, 1, 0.5), flat, flat)
    assert "in row 4 and column 2 of the kernel went from 0.5 to 1,000,000" in words
    made = np.array([[-1.0, 3.0]], np.float32)
    words = effect_words(PRESETS["copy"], None, made, made)
    assert words == "The map's mean is 1.00; its values go from −1.00 to 3.00."


def with_weight(kernel: Kernel, row: int, column: int, weight: float) -> Kernel:
    rows = [list(line) for line in kernel]
    rows[row][column] = weight
    return tuple(map(tuple, rows))


@pytest.mark.parametrize(
    ("row", "column", "place", "now", "gained"),
    [(1, 0, "at the left", -1.0, "gained 1"), (2, 2, "at the lower right", -3.0, "lost 4")],
)
def test_each_cell_has_gained_the_change_times_its_pixel(
    row: int, column: int, place: str, now: float, gained: str
) -> None:
    from scipy.signal import correlate2d  # noqa: PLC0415

    grey = np.random.default_rng(3).random((9, 9)).astype(np.float32)
    sobel = PRESETS["vertical"]
    kernel = with_weight(sobel, row, column, now)
    before, after = (correlate2d(grey, np.array(each), "valid") for each in (sobel, kernel))
    shifted = grey[row : row + 7, column : column + 7]
    np.testing.assert_allclose(after - before, (now - sobel[row][column]) * shifted, atol=1e-5)
    words = effect_words(kernel, ChangedWeight(row, column, sobel[row][column]), before, after)
    assert f"The weight {place} went from" in words
    assert f"{gained} × the pixel {place}" in words
    means = [
        float(text.replace("−", "-")) for text in re.findall(r"map: (\S+) → (\S+)\.$", words)[0]
    ]
    assert means == pytest.approx([before.mean(), after.mean()], rel=6e-3)

"""Probabilities as they are written, and ratios that a reader can check with what is shown."""

import numpy as np
import pytest

from hookviz.lessons.chances import chance, ratio


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (1.0, "100.0 %"),
        (0.99999, "> 99.9 %"),
        (0.9867, "98.7 %"),
        (0.25, "25.0 %"),
        (0.0344, "3.4 %"),
        (0.00999, "1.0 %"),
        (0.00144, "0.14 %"),
        (0.0000206, "0.0021 %"),
        (0.00000123, "0.00012 %"),
        (1e-9, "< 0.0001 %"),
        (0.0, "< 0.0001 %"),
    ],
)
def test_small_probabilities_keep_two_digits(share: float, written: str) -> None:
    assert chance(share) == written


def test_a_ratio_is_told_as_far_as_the_shown_numbers_bear_it_out() -> None:
    assert ratio(0.9867, 0.001437) == "700"  # not 686.6: what is shown makes 705
    assert ratio(0.6, 0.3) == "2.00"
    assert ratio(0.3, 0.3) == "1.00"
    assert ratio(0.9, 1e-9) == ""
    assert ratio(0.99999, 0.00001) == ""


def test_who_divides_the_shown_numbers_gets_the_ratio_that_is_told() -> None:
    draw = np.random.default_rng(8)
    told = 0
    for _ in range(500):
        smaller, larger = sorted(draw.uniform(0, 1, 2) ** 3)
        said = ratio(larger, smaller)
        if not said:
            continue
        told += 1
        shown = [float(chance(each).split()[0]) for each in (larger, smaller)]
        digits = len(said.replace(",", "").replace(".", "").strip("0") or "0")
        value = float(said.replace(",", ""))
        assert shown[0] / shown[1] == pytest.approx(value, rel=0.5 / 10 ** (digits - 1))
        assert larger / smaller == pytest.approx(value, rel=0.5 / 10 ** (digits - 1))
    assert told > 300

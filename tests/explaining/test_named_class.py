"""A class by its number or name, and what is said of one that is not there."""

import pytest

from hookviz.errors import SettingError
from hookviz.explaining.named_class import class_number

NAMES = ("circle", "square", "star")


@pytest.mark.parametrize(("value", "number"), [("star", 2), (1, 1), ("0", 0), (2.0, 2)])
def test_a_class_goes_by_number_or_name(value: object, number: int) -> None:
    assert class_number(value, NAMES, 3, "ours") == number


@pytest.mark.parametrize("value", [3, -1, True, None, "9" * 5000, float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"^target=.* is not a class of ours: 0 to 2\.$"):
        class_number(value, NAMES, 3, "ours")


def test_the_nearest_name_is_named() -> None:
    with pytest.raises(SettingError, match=r"ours knows no class 'stra'\. Did you mean 'star'\?"):
        class_number("stra", NAMES, 3, "ours")

"""Fields by hand: how far a cell of each layer sees grows with kernels and strides."""

import pytest

from hookviz.lessons.parts.depth import PART, levels
from tests.lessons.parts.scenes import cat, star, with_defaults


def test_fields_grow_as_the_arithmetic_of_strides_says() -> None:
    facts = PART.facts(star(), with_defaults(PART, layers="first, second, last"))
    field, step = 1, 1
    for kernel, stride in ((7, 2), (3, 2)):  # the first two layers of ShapesNet
        field, step = field + (kernel - 1) * step, step * stride
    assert facts["first_sees"] == "7×7 pixels"
    assert facts["second_sees"] == f"{field}×{field} pixels"
    assert facts["first_share"] == pytest.approx(49 / 128**2)
    assert facts["second_share"] == pytest.approx(field**2 / 128**2)


def test_a_later_layer_sees_no_less_than_an_earlier_one() -> None:
    """So the answer to the lesson's question is right for every network in the box."""
    for scene in (star(), cat()):
        facts = PART.facts(scene, with_defaults(PART))
        shares = [facts[f"{place}_share"] for place in ("early", "middle", "late")]
        assert shares == sorted(shares)
        assert shares[0] < shares[-1] <= 1  # type: ignore[operator]


def test_places_that_are_one_layer_stand_once() -> None:
    found = levels(star(), with_defaults(PART, layers="first, stem.first.conv, last"))
    assert [level.layer.name for level in found] == ["stem.first.conv", "stage3.shortcut.conv"]


@pytest.mark.parametrize("value", ["early", "early,,late", "first, second, early, late", ""])
def test_other_numbers_of_layers_are_refused(value: str) -> None:
    (option,) = PART.options
    assert option.check(value)
    assert not option.check(option.default or "")

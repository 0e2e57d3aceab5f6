import pytest

from hookviz.lessons.layers import maps_of, strongest_first
from hookviz.ui.lessons.parts.depth import AT, CHANNEL, PART, levels, start_of
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


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


def test_layers_are_named_by_places_and_each_stands_once() -> None:
    option = next(each for each in PART.options if each.name == "layers")
    for value in ("early", "early,,late", "first, second, early, late", ""):
        assert option.check(value)
    assert not option.check(option.default or "")
    twice, every = (
        [level.layer.name for level in levels(scene, with_defaults(PART, layers=layers))]
        for scene, layers in ((star(), "first, stem.first.conv, last"), (cat(), "all"))
    )
    assert twice == ["stem.first.conv", "stage3.shortcut.conv"]
    assert every == [conv.name for conv in cat().trace.convs]


@pytest.mark.parametrize(
    ("start", "at"),
    [("features.10.expand3x3, late", 18), ("nowhere, last", 25), ("first", 0), ("", 0)],
)
def test_the_slider_begins_at_the_first_layer_that_is_there(start: str, at: int) -> None:
    options = with_defaults(PART, layers="all", start=start)
    found = levels(cat(), options)
    assert start_of(cat(), options, found) == at
    facts = PART.facts(cat(), options)
    assert facts["at_number"] == at + 1
    assert facts["at_layer"] == found[at].layer.name
    moved = PART.facts(cat(), {**options, AT: "features.0"})
    assert (moved["at_number"], moved["at_sees"]) == (1, "3×3 pixels")
    assert moved["at_layer"] == "features.0"


def test_the_text_tells_of_the_channel_that_is_picked_among_the_strongest() -> None:
    options = with_defaults(PART, layers="all", start="first")
    first, second = strongest_first(maps_of(cat(), "features.0"), 2)
    assert PART.facts(cat(), options)["channel"] == first
    assert PART.facts(cat(), {**options, CHANNEL: str(second)})["channel"] == second
    weakest = strongest_first(maps_of(cat(), "features.0"), 64)[-1]
    for other in (str(weakest), "9999", "x", ""):
        assert PART.facts(cat(), {**options, CHANNEL: other})["channel"] == first


def test_the_channel_that_opens_the_lesson_is_strongest_at_an_eye() -> None:
    """The cat's eyes are about (80, 70) and (100, 190) of 224 × 224 pixels."""
    layer = "features.10.expand3x3"
    facts = PART.facts(cat(), with_defaults(PART, layers="all", start=layer))
    values = maps_of(cat(), layer)[int(facts["channel"])]
    row, column = divmod(int(values.argmax()), values.shape[1])
    assert (row + 0.5) / values.shape[0] * 224 == pytest.approx(80, abs=25)
    assert (column + 0.5) / values.shape[1] * 224 == pytest.approx(70, abs=25)

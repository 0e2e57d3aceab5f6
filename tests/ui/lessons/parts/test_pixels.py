import pytest
from PIL import Image

from hookviz.images.samples import samples
from hookviz.lessons.part import Options
from hookviz.ui.lessons.parts.pixels import AT, PART
from tests.ui.lessons.parts.scenes import photograph, with_defaults


@pytest.mark.parametrize(
    ("options", "row", "column"),
    [
        (with_defaults(PART, across="10", down="30"), 38, 12),
        ({**with_defaults(PART), AT: "5,9"}, 5, 9),
        ({**with_defaults(PART), AT: "500,0"}, 127, 0),
    ],
)
def test_the_numbers_are_those_of_the_pixel_that_is_picked(
    options: Options, row: int, column: int
) -> None:
    given = photograph().model_input
    facts = PART.facts(photograph(), options)
    assert given.picture is not None
    assert (facts["row"], facts["column"]) == (row, column)
    colours = ("red", "green", "blue")
    assert [facts[each] for each in colours] == given.picture[row, column].tolist()
    inputs = given.tensor[0, :, row, column].tolist()
    assert [facts[f"{each}_input"] for each in colours] == inputs
    assert facts["numbers"] == 3 * 128 * 128
    with Image.open(samples()[0].path) as image:
        assert (facts["image_width"], facts["image_height"]) == image.size

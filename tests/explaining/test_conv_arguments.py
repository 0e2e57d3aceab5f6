import pytest

from hookviz.explaining.conv_arguments import padding_around, pair


@pytest.mark.parametrize("argument", [3, (3,), [3], (3, 3)])
def test_one_number_stands_for_both(argument: int | tuple[int, ...]) -> None:
    assert pair(argument) == (3, 3)


def test_the_vertical_one_comes_first() -> None:
    assert pair((1, 2)) == (1, 2)


@pytest.mark.parametrize(
    ("padding", "around"),
    [
        ("valid", (0, 0, 0, 0)),
        (1, (1, 1, 1, 1)),
        ((2, 1), (1, 1, 2, 2)),
        ("same", (1, 2, 1, 1)),  # 3 columns to share: the odd one is on the right
    ],
)
def test_the_padding_that_a_convolution_adds(
    padding: str | int | tuple[int, int], around: tuple[int, int, int, int]
) -> None:
    assert padding_around(padding, (2, 4), (2, 1)) == around

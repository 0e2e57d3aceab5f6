"""One channel's origin, as Streamlit runs the page without a browser."""

import pytest

from tests.ui.test_page import opened, texts


@pytest.mark.parametrize(
    ("origin", "says"),
    [
        ("One cell", "which the sum gives too"),
        ("Kernel", "Norm (root of the sum of squares)"),
    ],
)
def test_where_a_channel_comes_from_is_in_the_link(origin: str, says: str) -> None:
    page = opened(channel="5", cell="3,4", origin=origin)
    assert says in texts(page.markdown)


def test_a_cell_says_what_it_sees() -> None:
    page = opened(model="ShapesNet", channel="1", layer="stage2.second.conv")
    assert not page.info
    assert "receptive field: 43×43 pixels" in texts(page.caption)

"""Which channel a link shows, as Streamlit runs the page without a browser."""

import pytest

from tests.ui.test_page import opened, texts


def test_a_link_to_a_channel_shows_it() -> None:
    page = opened(model="ShapesNet", channel="31")
    assert "Channel 31" in texts(page.subheader)


@pytest.mark.parametrize("channel", ["32", "-1", "x", "²", "1e3", "9" * 40])
def test_a_link_to_no_channel_shows_the_grid_alone(channel: str) -> None:
    page = opened(model="ShapesNet", channel=channel)
    assert "All 32 channels." in texts(page.caption)
    assert "Channel" not in texts(page.subheader)
    assert not page.error
    assert not page.warning

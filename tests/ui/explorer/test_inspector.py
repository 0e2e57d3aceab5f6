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


@pytest.mark.parametrize("made", ["9999-0", "0-0", "a-b", "1-99999999999"])
def test_what_the_link_has_no_business_to_ask_for_is_no_picture(made: str) -> None:
    page = opened(model="ShapesNet", layer="stage2.second.conv", channel="9", made=made)
    assert any("What does it look for?" in button.label for button in page.button)
    assert not page.error

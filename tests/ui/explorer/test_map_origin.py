"""One channel's origin, as Streamlit runs the page without a browser."""

from tests.ui.test_page import opened, texts


def test_a_channel_shows_its_numbers_at_the_cell_in_the_link() -> None:
    page = opened(channel="5", cell="3,4")
    assert page.segmented_control(key="origin").value == "Numbers"
    assert {field.label: field.value for field in page.number_input} == {"Row": 3, "Column": 4}


def test_where_a_channel_comes_from_is_in_the_link() -> None:
    page = opened(channel="5", cell="3,4", origin="Kernel")
    assert "Norm (root of the sum of squares)" in texts(page.markdown)
    page = opened(channel="5", cell="3,4", origin="Walk")
    assert [box.label for box in page.selectbox if box.label == "Input channel"]


def test_a_cell_says_what_it_sees() -> None:
    page = opened(model="ShapesNet", channel="1", layer="stage2.second.conv")
    assert not page.info
    assert "framed: what the cell sees, 43×43 px" in texts(page.caption)

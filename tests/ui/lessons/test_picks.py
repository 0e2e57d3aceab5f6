from urllib.parse import parse_qsl, urlencode

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.ui.lessons.picks import MOVED

PART = "depth-1-2"


_SCRIPT = """
import streamlit as st

from hookviz.ui.lessons.picks import choose, pick, picked, slide

key = "depth-1-2"
st.button("cell", on_click=pick, args=(key, "cell", (3, 4)))
st.button("many", on_click=pick, args=(key, "many", "x" * 900))


def count_on() -> None:
    pick(key, "tries", picked(key, "tries", 0) + 1)


st.button("count on", on_click=count_on)
place = choose(st.selectbox, "Layer", ("first", "last"), key, "place", first="first")
count = slide("Count", range(10), key, "count", first=2)
st.text(repr((place, count, picked(key, "cell", (0, 0)), picked(key, "channel", 7))))
"""


def opened(**moves: str) -> AppTest:
    page = AppTest.from_string(_SCRIPT)
    if moves:
        page.query_params[MOVED] = urlencode({f"{PART} {name}": at for name, at in moves.items()})
    return page.run()


def link_of(page: AppTest) -> str:
    text = page.query_params[MOVED]
    return text if isinstance(text, str) else text[-1]


def moved(page: AppTest) -> dict[str, str]:
    return dict(parse_qsl(link_of(page)))


def test_what_is_moved_is_in_the_link_and_another_page_begins_with_it() -> None:
    page = opened()
    assert page.text[0].value == "('first', 2, (0, 0), 7)"
    assert MOVED not in page.query_params
    page.selectbox[0].select("last").run()
    page.slider[0].set_value(5).run()
    page.button[0].click().run()
    assert page.text[0].value == "('last', 5, (3, 4), 7)"
    assert moved(page) == {
        f"{PART} place": "last",
        f"{PART} count": "5",
        f"{PART} cell": "3,4",
    }
    other = AppTest.from_string(_SCRIPT)
    other.query_params[MOVED] = link_of(page)
    assert other.run().text[0].value == page.text[0].value
    del other.query_params[MOVED]  # as Back does
    assert other.run().text[0].value == "('first', 2, (0, 0), 7)"


def test_a_click_that_set_out_before_the_last_one_was_in_the_link_counts_on_from_it() -> None:
    page = opened()
    for tries in (1, 2, 3):
        next(each for each in page.button if each.label == "count on").click().run()
        assert moved(page) == {f"{PART} tries": str(tries)}
        del page.query_params[MOVED]  # what the browser had when the next one was clicked


@pytest.mark.parametrize(
    "moves",
    [
        {"place": "nowhere", "cell": "1", "channel": "x", "count": "٣"},
        {"cell": "-1,2", "channel": "9" * 30, "count": ""},
        {"place": "x" * 2000, "channel": "3"},  # too long a link is none
    ],
)
def test_what_no_part_can_have_moved_is_left_out(moves: dict[str, str]) -> None:
    page = opened(**moves)
    assert not page.exception
    assert page.text[0].value == "('first', 2, (0, 0), 7)"


def test_a_slider_stays_within_its_ends_and_the_oldest_is_left_out_where_there_is_too_much() -> (
    None
):
    assert opened(count="-4").slider[0].value == 0
    page = opened(place="last", count="400", before="y" * 90)
    assert page.slider[0].value == 9
    page.button[1].click().run()
    assert [*moved(page)][-1] == f"{PART} many"
    assert f"{PART} before" not in moved(page)

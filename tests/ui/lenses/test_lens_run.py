import numpy as np
from streamlit.testing.v1 import AppTest

from hookviz.lenses.contract.lens import LensResult
from hookviz.ui.lenses.lens_run import Growth

AGAIN = """
import streamlit as st
from hookviz.ui.lenses.lens_run import Redrawn

def count():
    st.session_state.clicks = st.session_state.get("clicks", 0) + 1

def draw(step):
    def show():
        st.markdown(f"step {step}")
        st.dataframe({"a": [step]}, key="table")
        st.button("Own", key="own", on_click=count)
    return show

st.button("Before", key="before")
place = Redrawn(clear=CLEAR)
for step in range(3):
    place.draw(draw(step))
    st.button(f"Between {step}", key=f"between {step}")
place.draw(draw(3), once=True)
"""
TWICE = "\nplace.draw(lambda: st.button('Before again', key='before'))"


def result(step: int) -> LensResult:
    return LensResult("growing", (), {"step": np.array(step)}, {}, 0.0)


def test_only_so_many_are_shown_as_one_can_see() -> None:
    now, shown = 0.0, list[int]()

    def show(each: LensResult) -> None:
        shown.append(int(each.values["step"]))

    growth = Growth(show, lambda: now)
    for step in range(100):  # of a hundredth of a second
        growth.show_if_due(result(step))
        now += 0.01
    assert shown == list(range(0, 100, 16))


def test_most_of_the_time_is_the_lens_s_where_drawing_is_slow() -> None:
    now, shown = 0.0, list[float]()

    def show(_each: LensResult) -> None:
        nonlocal now
        shown.append(now)
        now += 0.5

    growth = Growth(show, lambda: now)
    for step in range(1000):
        growth.show_if_due(result(step))
        now += 0.01
    assert 4 * 0.5 * len(shown) <= now <= 6 * 0.5 * len(shown)


def test_a_place_is_drawn_again_with_its_controls_and_stays_in_place() -> None:
    for clear in ("True", "False"):
        page = AppTest.from_string(AGAIN.replace("CLEAR", clear)).run()
        assert not page.exception
        assert [element.value for element in page.markdown] == ["step 3"]
        labels = [button.label for button in page.button]
        assert labels == ["Before", "Own", "Between 0", "Between 1", "Between 2"]
        page.button(key="own").click().run()  # Streamlit still knows the one that is there
        assert page.session_state["clicks"] == 1
        assert not page.exception
    page = AppTest.from_string(AGAIN.replace("CLEAR", "True") + TWICE).run()
    assert len(page.exception) == 1  # of what stands elsewhere too

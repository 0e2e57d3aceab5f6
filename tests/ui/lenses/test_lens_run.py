import numpy as np
import pytest
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


@pytest.mark.parametrize(("drawing_s", "steps"), [(0.0, 100), (0.5, 1000)])
def test_partial_results_are_drawn_six_times_a_second_and_in_a_fifth_of_the_time(
    drawing_s: float, steps: int
) -> None:
    now, drawn = 0.0, list[int]()

    def show(each: LensResult) -> None:
        nonlocal now
        drawn.append(int(each.values["step"]))
        now += drawing_s

    growth = Growth(show, lambda: now)
    for step in range(steps):
        growth.show_if_due(LensResult("growing", (), {"step": np.array(step)}, {}, 0.0))
        now += 0.01
    if drawing_s:
        assert 4 * drawing_s * len(drawn) <= now <= 6 * drawing_s * len(drawn)
    else:
        assert drawn == list(range(0, steps, 16))


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

"""The bar beside *Stop*, as Streamlit draws it."""

from typing import Any

from streamlit.testing.v1 import AppTest

BAR = """
import streamlit as st
from hookviz.serving.turns import RunSlot
from hookviz.serving.fair_queue import FairQueue
from hookviz.ui import run_bar

now = 100.0
run_bar.time.monotonic, before = (lambda: now), run_bar.time.monotonic
try:
    bar = run_bar.RunBar("Growing", lambda: None, FROM)
    held = RunSlot(FairQueue(1), "me", "Growing")
    bar.start(held, lambda: st.write("the spinner goes"))
    STEPS
finally:
    run_bar.time.monotonic = before
"""


def shown(steps: str, *, begun: float = 0.0) -> tuple[AppTest, Any]:
    script = BAR.replace("FROM", str(begun)).replace("STEPS", steps.replace("\n", "\n    "))
    page = AppTest.from_string(script).run()
    assert not page.exception
    bars = [element.proto for element in page.get("progress")]
    return page, bars[0] if bars else None


def test_a_short_run_shows_no_bar() -> None:
    page, bar = shown("now += 0.4; bar.report(0.5)")
    assert bar is None
    assert not page.button
    assert not page.markdown


def test_a_long_run_shows_how_far_it_is_and_how_long_it_takes() -> None:
    page, bar = shown("now += 20; bar.report(0.5)")
    assert (bar.value, bar.text) == (50, "Growing… about 20 s left")
    assert [button.label for button in page.button] == ["Stop"]
    assert page.markdown[0].value == "the spinner goes"


def test_what_goes_on_is_measured_from_where_it_went_on() -> None:
    _, bar = shown("now += 20; bar.report(0.6)", begun=0.5)
    assert (bar.value, bar.text) == (60, "Growing… about 80 s left")
    _, bar = shown("now += 20; bar.report(0.2)", begun=0.5)  # it did begin anew
    assert bar.text == "Growing… about 80 s left"


def test_the_time_in_which_others_computed_is_not_counted() -> None:
    _, bar = shown("held.yielded = 15.0; now += 20; bar.report(0.5)")
    assert bar.text == "Growing… about 5 s left"


def test_a_wait_that_takes_more_than_a_moment_says_the_place() -> None:
    _, bar = shown("now += 20; bar.report(0.5); bar.wait(3)")
    assert bar.text == "Growing… about 20 s left"
    _, bar = shown("now += 20; bar.report(0.5); bar.wait(3); now += 0.4; bar.wait(2)")
    assert bar.text == "Growing… waits for others, number 2 in the queue"
    assert bar.value == 50
    _, bar = shown("bar.wait(3); now += 0.4; bar.wait(2); now += 1; bar.report(0.5)")
    assert "waits" not in bar.text


def test_at_the_end_both_go() -> None:
    page, bar = shown("now += 20; bar.report(0.5); bar.end()")
    assert bar is None
    assert not page.button

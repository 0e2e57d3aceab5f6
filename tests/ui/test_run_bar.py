from typing import Any

import pytest
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


@pytest.mark.parametrize(
    ("begun", "steps", "says"),
    [
        (0.0, "now += 20; bar.report(0.5)", (50, "Growing… about 20 s left")),
        (0.5, "now += 20; bar.report(0.6)", (60, "Growing… about 80 s left")),  # it goes on
        (0.5, "now += 20; bar.report(0.2)", (20, "Growing… about 80 s left")),  # it begins anew
        (0.0, "held.yielded = 15.0; now += 20; bar.report(0.5)", (50, "Growing… about 5 s left")),
        (0.0, "now += 20; bar.report(0.5); bar.wait(3)", (50, "Growing… about 20 s left")),
        (
            *(0.0, "now += 20; bar.report(0.5); bar.wait(3); now += 0.4; bar.wait(2)"),
            (50, "Growing… waits for others, number 2 in the queue"),
        ),
        (
            *(0.0, "bar.wait(3); now += 0.4; bar.wait(2); now += 1; bar.report(0.5)"),
            (50, "Growing… about 1 s left"),
        ),
        (0.0, "now += 0.4; bar.report(0.5)", None),  # a short run
        (0.0, "now += 20; bar.report(0.5); bar.end()", None),
    ],
)
def test_a_long_run_says_how_far_it_is_and_how_long_it_takes_or_waits(
    begun: float, steps: str, says: tuple[int, str] | None
) -> None:
    """Measured from where it went on, without the time in which others computed."""
    page = AppTest.from_string(BAR.replace("FROM", str(begun)).replace("STEPS", steps)).run()
    assert not page.exception
    bars: list[Any] = [each.proto for each in page.get("progress")]
    assert [(bar.value, bar.text) for bar in bars] == ([says] if says else [])
    assert [button.label for button in page.button] == (["Stop"] if says else [])
    is_shown = bool(says) or "end" in steps
    assert [each.value for each in page.markdown] == (["the spinner goes"] if is_shown else [])

import base64
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.live.frames import MOST_BYTES
from hookviz.ui import recent_images
from hookviz.ui.live import frozen_frame
from hookviz.ui.live.frozen_frame import FrozenFrame, read_frame
from tests.pictures import encoded, picture
from tests.ui.pages import labels, opened, ran

FILE = encoded(picture(1, 60, 40))


def sent(**changes: Any) -> dict[str, Any]:
    told = {"file": base64.b64encode(FILE).decode(), "at": "12:03:07", "channel": 5}
    return told | {"cell": [1, 2, 64, 64]} | changes


NAME, CELL = "Frame 12:03:07", (1, 2, 64, 64)


@pytest.mark.parametrize(
    ("changes", "frame"),
    [
        ({}, FrozenFrame(NAME, FILE, 5, CELL)),
        ({"channel": None, "cell": None}, FrozenFrame(NAME, FILE, None, None)),
        ({"at": "<b>12:03</b>"}, FrozenFrame("Frame", FILE, 5, CELL)),
        ({"at": 7}, FrozenFrame("Frame", FILE, 5, CELL)),
        ({"channel": -1}, FrozenFrame(NAME, FILE, None, CELL)),
        ({"channel": True}, FrozenFrame(NAME, FILE, None, CELL)),
        ({"channel": 1 << 40}, FrozenFrame(NAME, FILE, None, CELL)),
        ({"cell": [1, 2]}, FrozenFrame(NAME, FILE, 5, None)),
        ({"cell": [1, 2, 3, "4"]}, FrozenFrame(NAME, FILE, 5, None)),
    ],
)
def test_a_frame_is_read_without_what_makes_no_sense_beside_it(
    changes: dict[str, Any], frame: FrozenFrame
) -> None:
    assert read_frame(sent(**changes)) == frame


def test_what_is_no_frame_is_none() -> None:
    too_large = base64.b64encode(bytes(MOST_BYTES + 10)).decode()
    for file in (None, "no base64!", "ä", too_large):
        assert read_frame(sent(file=file)) is None
    nothing: tuple[Any, ...] = (None, "words", ["file"], {})
    assert [read_frame(message) for message in nothing] == [None] * 4


def freeze(page: AppTest, data: bytes) -> None:
    frame = FrozenFrame("Frame 12:03:07", data, None, None)
    page.session_state[frozen_frame._ARRIVED] = frame, "0a1b2c3d"
    page.query_params["image"] = "Upload"
    ran(page)


def test_a_frame_is_a_recent_image_and_leads_back_to_the_stream() -> None:
    page = opened(model="ShapesNet")
    assert "Back to live" not in labels(page)
    freeze(page, FILE)
    kept = page.session_state[recent_images._KEY]
    assert [(each.thumbnail.title, each.data) for each in kept] == [("Frame 12:03:07", FILE)]
    assert page.query_params["upload"] == kept[0].thumbnail.name
    held = "0a1b2c3d,-1.5,1.5,signed"
    page.query_params["held"] = held
    assert page.run().query_params["held"] == held
    page.button(key="hv-go-on").click().run()
    assert page.query_params["image"] == "Live"
    assert not {"upload", "held"} & page.query_params.keys()  # it was that frame's
    assert "Back to live" not in labels(page)


def test_a_frame_that_is_no_picture_is_refused_in_words() -> None:
    page = opened(model="ShapesNet")
    freeze(page, FILE[:60])
    assert "Frame 12:03:07" in page.error[0].value.replace("\\", "")
    assert recent_images._KEY not in page.session_state
    assert "Back to live" not in labels(page)

"""A frame out of the stream, as a browser hands it over and as the page takes it."""

import base64
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.live.frames import MOST_BYTES
from hookviz.ui import recent_images
from hookviz.ui.live import frozen_frame
from hookviz.ui.live.frozen_frame import FrozenFrame, read_frame
from scripts.servers import ROOT
from tests.pictures import encoded, picture

FILE = encoded(picture(1, 60, 40))


def sent(**changes: Any) -> dict[str, Any]:
    told = {"file": base64.b64encode(FILE).decode(), "at": "12:03:07", "channel": 5}
    return told | {"cell": [1, 2, 64, 64]} | changes


def test_what_the_browser_hands_over_is_read() -> None:
    assert read_frame(sent()) == FrozenFrame("Frame 12:03:07", FILE, 5, (1, 2, 64, 64))
    assert read_frame(sent(channel=None, cell=None)) == FrozenFrame(
        "Frame 12:03:07", FILE, None, None
    )


@pytest.mark.parametrize(
    "message",
    [
        None,
        "words",
        ["file"],
        {},
        sent(file=None),
        sent(file="no base64!"),
        sent(file="ä"),
        sent(file=base64.b64encode(bytes(MOST_BYTES + 10)).decode()),
    ],
)
def test_what_is_no_frame_is_none(message: Any) -> None:
    assert read_frame(message) is None


@pytest.mark.parametrize(
    ("changes", "name", "channel", "cell"),
    [
        ({"at": "<b>12:03</b>"}, "Frame", 5, (1, 2, 64, 64)),
        ({"at": 7}, "Frame", 5, (1, 2, 64, 64)),
        ({"channel": -1}, "Frame 12:03:07", None, (1, 2, 64, 64)),
        ({"channel": True}, "Frame 12:03:07", None, (1, 2, 64, 64)),
        ({"channel": 1 << 40}, "Frame 12:03:07", None, (1, 2, 64, 64)),
        ({"cell": [1, 2]}, "Frame 12:03:07", 5, None),
        ({"cell": [1, 2, 3, "4"]}, "Frame 12:03:07", 5, None),
    ],
)
def test_what_makes_no_sense_beside_a_frame_is_left_out(
    changes: dict[str, Any], name: str, channel: int | None, cell: tuple[int, ...] | None
) -> None:
    frame = read_frame(sent(**changes))
    assert frame is not None
    assert (frame.name, frame.channel, frame.cell) == (name, channel, cell)


def opened() -> AppTest:
    page = AppTest.from_file(str(ROOT / "hookviz" / "ui" / "main.py"), default_timeout=60)
    page.query_params["model"] = "ShapesNet"
    return page.run()


def freeze(page: AppTest, data: bytes) -> None:
    page.session_state[frozen_frame._ARRIVED] = FrozenFrame("Frame 12:03:07", data, None, None)
    page.query_params["image"] = "Upload"
    page.run()
    assert not page.exception


def test_a_frame_is_a_recent_image_and_leads_back_to_the_stream() -> None:
    page = opened()
    assert "Back to live" not in [button.label for button in page.button]
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
    assert "Back to live" not in [button.label for button in page.button]


def test_a_frame_that_is_no_picture_is_refused_in_words() -> None:
    page = opened()
    freeze(page, FILE[:60])
    assert "Frame 12:03:07" in page.error[0].value.replace("\\", "")
    assert recent_images._KEY not in page.session_state
    assert "Back to live" not in [button.label for button in page.button]

import base64
from typing import Any

import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

import hookviz
from hookviz.live.frames import MOST_BYTES, Subject
from hookviz.live.streams import streams
from hookviz.models.catalog import find_model
from hookviz.ui import live, recent_images
from hookviz.ui.live import FrozenFrame, frame_geometry, read_frame
from tests.pictures import encoded, picture
from tests.ui.pages import labels, opened, ran


def offered(page: AppTest) -> Subject | None:
    offer = streams()._by_owner.get(page.session_state["_session"])
    return offer.subject if offer else None


def test_the_stream_is_of_what_is_chosen_and_ends_with_another_source() -> None:
    page = opened(model="ShapesNet", image="Live", sort="max", top="16")
    subject = offered(page)
    assert subject is not None
    assert (subject.step, subject.look.sort, subject.look.top) == ("stem.first.conv", "max", 16)
    assert (subject.look.scale, subject.size, subject.whole) == ("balanced", None, False)
    with subject.use_model() as model:
        assert model.name == "shapesnet"
    assert "freeze a frame" in "".join(caption.value for caption in page.caption)
    page.query_params["layer"] = "stage1.first.conv"
    ran(page)
    subject = offered(page)
    assert subject is not None
    assert subject.step == "stage1.first.conv"
    page.query_params["image"] = "Samples"
    ran(page)
    assert offered(page) is None


def test_it_says_that_a_large_networks_numbers_are_rounded() -> None:
    said = {}
    for model in ("squeezenet1_1", "shapesnet"):
        page = opened(model=find_model(model).title, weights="random", image="Live")
        assert offered(page) is not None
        said[model] = "".join(caption.value for caption in page.sidebar.caption)
    assert "2 in 100,000" in said["squeezenet1_1"]
    assert "100,000" not in said["shapesnet"]


@pytest.mark.parametrize(
    ("name", "size", "whole"),
    [("shapesnet", None, False), ("squeezenet1_1", 96, False), ("squeezenet1_1", None, True)],
)
def test_the_part_that_is_framed_is_what_the_network_sees(
    name: str, size: int | None, whole: bool
) -> None:
    of_its_own = hookviz.wrap(nn.Conv2d(3, 4, 3), preprocess=lambda _: torch.zeros(3, 16, 16))
    assert frame_geometry(of_its_own, size=None, whole=False) == (256, None)  # an unknown part
    model = hookviz.load_model(name, weights="random")
    side, seen = frame_geometry(model, size=size, whole=whole)
    frame = encoded(picture(1, side * 4 // 3, side))  # as the browser shrinks it
    made = hookviz.prepare_input(model, frame, size=size, whole=whole)
    crop = made.crop
    assert crop is not None
    assert seen is not None
    if whole:
        assert seen == 0
        assert min(made.tensor.shape[2:]) == side  # so nothing was thrown away
    else:
        assert crop.bottom - crop.top == pytest.approx(seen * side, abs=1)
        assert (crop.left + crop.right) / 2 == pytest.approx(side * 4 // 3 / 2, abs=1)


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
    page.session_state[live._ARRIVED] = frame, "0a1b2c3d"
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

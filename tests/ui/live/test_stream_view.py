import pytest
import torch
from streamlit.testing.v1 import AppTest
from torch import nn

import hookviz
from hookviz.live.frames import Subject
from hookviz.live.streams import streams
from hookviz.models.catalog import find_model
from hookviz.ui.live.stream_view import frame_geometry
from tests.pictures import encoded, picture
from tests.ui.pages import opened, ran


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
    made = hookviz.prepare(model, frame, size=size, whole=whole)
    crop = made.crop
    assert crop is not None
    assert seen is not None
    if whole:
        assert seen == 0
        assert min(made.tensor.shape[2:]) == side  # so nothing was thrown away
    else:
        assert crop.bottom - crop.top == pytest.approx(seen * side, abs=1)
        assert (crop.left + crop.right) / 2 == pytest.approx(side * 4 // 3 / 2, abs=1)

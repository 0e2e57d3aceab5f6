"""A channel as a file: each opens, and says what was captured."""

import io

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.errors import SettingError
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from tests.explorer.asking import ask
from tests.explorer.subjects import pinned, subject_of
from tests.networks import Tiny, as_model, seeded

VIEW = View(layer="conv2", top=16)


@pytest.fixture
def subject() -> Subject:
    return subject_of(as_model(seeded(Tiny).eval()))


def test_the_numbers_the_picture_and_the_page_open(subject: Subject) -> None:
    answer = ask(subject, "file", VIEW, kind="channel-csv", channel=3)
    assert answer.facts == {"name": "Tiny-conv2-channel-3.csv", "mime": "text/csv"}
    read = np.loadtxt(io.BytesIO(answer.data), delimiter=",", dtype="float32")
    values = hookviz.capture(subject.model, subject.model_input)["conv2"].values[3]
    np.testing.assert_array_equal(read, values.numpy())
    answer = ask(subject, "file", VIEW, kind="channel-png", channel=3)
    assert answer.facts == {"name": "Tiny-conv2-channel-3.png", "mime": "image/png"}
    with Image.open(io.BytesIO(answer.data)) as picture:
        picture.load()
        assert picture.format == "PNG"
        assert picture.width > 1000  # 3 × 3.6 inches at 200 dots each
    assert ask(subject, "file", VIEW, kind="channel-png", channel=2).data != answer.data
    answer = ask(subject, "file", VIEW, kind="channel-pdf", channel=3)
    assert answer.facts == {"name": "Tiny-conv2-channel-3.pdf", "mime": "application/pdf"}
    assert answer.data.startswith(b"%PDF-")
    assert answer.data.rstrip().endswith(b"%%EOF")


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_the_whole_network_is_a_file(subject: Subject, kind: str, begins: bytes) -> None:
    answer = ask(subject, "file", VIEW, kind=f"map-{kind}")
    assert answer.facts["name"] == f"Tiny-map.{kind}"
    assert answer.facts["mime"].startswith("image/")
    assert answer.data.startswith(begins)
    expected = hookviz.map_network(subject.model, subject.model_input)
    assert answer.data == expected.figure_bytes(kind)


def test_a_channel_that_the_tiles_leave_out_has_the_same_file() -> None:
    subject = subject_of(hookviz.load_model("shapesnet"))
    few, every = (
        ask(subject, "file", View(top=top), kind="channel-png", channel=31).data
        for top in (16, None)
    )
    assert few == every


def test_beside_a_it_is_in_the_colours_of_both(subject: Subject) -> None:
    other = subject_of(subject.model, "cat")
    both = subject_of(subject.model, pinned=pinned(other, "conv2"))
    alone = ask(subject, "file", VIEW, kind="channel-png", channel=3)
    assert ask(both, "file", VIEW, kind="channel-png", channel=3).data != alone.data
    csv = ask(both, "file", VIEW, kind="channel-csv", channel=3)
    assert csv == ask(subject, "file", VIEW, kind="channel-csv", channel=3)
    for kind in ("channel-svg", ["channel-png"]):
        with pytest.raises(SettingError, match="Choose from channel-png, channel-pdf, channel-csv"):
            ask(subject, "file", VIEW, kind=kind, channel=3)
    with pytest.raises(NotThereError, match="conv2 has no channel"):
        ask(subject, "file", VIEW, kind="channel-csv", channel=6)

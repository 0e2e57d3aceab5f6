"""One channel as an answer and as a file, against the capture and NumPy."""

import io
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import hookviz
from hookviz.drawing.grid import make_grid
from hookviz.errors import SettingError
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.types import Model
from hookviz.wording import number
from tests.explorer.asking import ask, decoded, floats, pinned, read, subject_of
from tests.networks import Tiny, as_model, seeded

VIEW = View(layer="conv2")


def changed(change: "torch.Tensor | float", channel: int = 1) -> Model:
    """A network whose second layer has other weights in one channel."""
    network = seeded(Tiny).eval()
    with torch.no_grad():
        network.conv2.weight[channel] = change
    return as_model(network)


@pytest.fixture
def model() -> Model:
    return as_model(seeded(Tiny).eval())


@pytest.fixture
def subject(model: Model) -> Subject:
    return subject_of(model)


def maps_of(subject: Subject, layer: str) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    """What a layer puts out, by a pass of its own."""
    return hookviz.capture(subject.model, subject.model_input)[layer].values.numpy()


def test_a_step_after_the_layer_has_its_own_values() -> None:
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU())).eval()
    subject = subject_of(as_model(network))
    facts = ask(subject, "channel", View(after="ReLU"), channel=4).facts
    expected = np.maximum(maps_of(subject, "0")[4], 0)
    np.testing.assert_array_equal(floats(facts["values"], *expected.shape), expected)


def test_the_values_are_the_captures_bit_for_bit_and_the_numbers_numpys(subject: Subject) -> None:
    maps = maps_of(subject, "conv2")
    for channel, values in enumerate(maps.astype(np.float64)):
        facts = ask(subject, "channel", VIEW, channel=channel).facts
        assert (facts["channel"], facts["title"]) == (channel, f"Channel {channel}")
        assert (facts["rows"], facts["columns"]) == values.shape
        np.testing.assert_array_equal(floats(facts["values"], *values.shape), maps[channel])
        said = {name: value for name, value, _ in facts["numbers"]}
        cells = {name: cell for name, _, cell in facts["numbers"] if cell}
        assert list(cells) == ["minimum", "maximum"]
        assert values[cells["minimum"]] == values.min()
        assert values[cells["maximum"]] == values.max()
        assert said["minimum"] == number(values.min())
        assert said["mean"] == number(values.mean())
        assert said["maximum"] == number(values.max())
        assert said["standard deviation"] == number(values.std())
        assert said["zeros"] == f"{100 * (values == 0).mean():.0f} %"
        rank = 1 + int((maps.max((1, 2)) > values.max()).sum())
        assert said["rank by maximum"] == f"{rank} of 6"
    with pytest.raises(NotThereError, match=r"conv2 has no channel .*: its channels are 0 to 5\."):
        ask(subject, "channel", VIEW, channel=6)


def test_the_histogram_is_numpys(subject: Subject) -> None:
    values = maps_of(subject, "conv2")[2].astype(np.float64)
    counts, edges = np.histogram(values, 48)
    facts = ask(subject, "channel", VIEW, channel=2).facts["histogram"]
    heights = np.array([height for height, _ in facts["bars"]])
    np.testing.assert_array_equal(np.rint(heights * counts.max() / 100), counts)
    assert all((height > 0) == (count > 0) for height, count in zip(heights, counts, strict=True))
    middles = (edges[1:] + edges[:-1]) / 2
    sides = [side for _, side in facts["bars"]]
    assert sides == ["below" if middle < 0 else "above" for middle in middles]
    assert {"below", "above"} == set(sides)
    assert read(facts["low"]) == pytest.approx(values.min(), rel=1e-2)
    assert read(facts["high"]) == pytest.approx(values.max(), rel=1e-2)
    assert f"{values.size} cells" in facts["says"]
    conv = nn.Conv2d(3, 1, 1)
    with torch.no_grad():
        conv.weight[:] = torch.tensor([1.0, 0, 0])[:, None, None]  # nearly all is one colour
    steps = hookviz.Preprocess(resize=256, crop=256)
    few = subject_of(hookviz.wrap(nn.Sequential(conv).eval(), steps))
    bars = ask(few, "channel", channel=0).facts["histogram"]["bars"]
    assert min(height for height, _ in bars if height) == 1.0  # a bar of few cells is there


def test_the_picture_and_the_bar_are_the_layers(subject: Subject) -> None:
    grid = make_grid(
        maps_of(subject, "conv2"), scale="balanced", colormap=subject.colours.diverging
    )
    facts = ask(subject, "channel", VIEW, channel=3).facts
    np.testing.assert_array_equal(decoded(facts["picture"]), grid.channel_pixels(3))
    assert facts["ticks"] == [[at, label] for at, label in grid.ticks_of(3)]
    assert decoded(facts["bar"]).shape[1] == 256


def test_a_channel_that_the_tiles_leave_out_is_answered_in_the_layers_colours() -> None:
    network = nn.Sequential(nn.Conv2d(3, 40, 3)).eval()
    subject = subject_of(as_model(network))
    few = ask(subject, "channel", View(top=16), channel=39).facts
    assert few == ask(subject, "channel", View(), channel=39).facts


def test_a_channel_of_one_value_is_constant() -> None:
    subject = subject_of(changed(0.0))
    facts = ask(subject, "channel", VIEW, channel=1).facts
    assert facts["dead"] == "constant here: every cell has the same value"
    assert facts["deadHint"]
    with speaking("zh_CN"):
        assert ask(subject, "channel", VIEW, channel=1).facts["deadHint"] != facts["deadHint"]
    assert ask(subject, "channel", VIEW, channel=0).facts["dead"] == ""
    facts = ask(subject_of(changed(float("nan"))), "channel", VIEW, channel=1).facts
    assert facts["noFinite"] == "No cell of this map is a finite number."
    assert (facts["histogram"], facts["numbers"]) == (None, [])
    assert np.isnan(floats(facts["values"], facts["rows"], facts["columns"])).all()


class TestPair:
    """A channel beside that of what is pinned as A."""

    @pytest.fixture
    def of_a(self, model: Model) -> Subject:
        return subject_of(model, "cat")

    @pytest.fixture
    def both(self, model: Model, of_a: Subject) -> Subject:
        return subject_of(model, pinned=pinned(of_a, "conv2"))

    @pytest.mark.parametrize("shown", ["A", "Difference"])
    def test_both_are_there_with_how_far_they_agree(
        self, both: Subject, of_a: Subject, shown: str
    ) -> None:
        facts = ask(both, "channel", View(layer="conv2", compared=shown), channel=3).facts
        a, b = maps_of(of_a, "conv2")[3], maps_of(both, "conv2")[3]
        np.testing.assert_array_equal(floats(facts["values"], *b.shape), b)
        np.testing.assert_array_equal(floats(facts["pair"]["a"]["values"], *a.shape), a)
        assert decoded(facts["pair"]["a"]["picture"]).shape[:2] == a.shape
        x, y = (each.astype(np.float64).ravel() for each in (a, b))
        pair = facts["pair"]
        assert read(pair["correlation"]) == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-3)
        cosine = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
        assert read(pair["cosine"]) == pytest.approx(cosine, abs=1e-3)
        assert read(pair["meanDifference"]) == pytest.approx(np.abs(y - x).mean(), rel=1e-2)

    def test_both_are_in_the_colours_of_one_scale(self, subject: Subject, of_a: Subject) -> None:
        view = View(layer="conv2", scale="layer")
        alone = ask(of_a, "channel", view, channel=3).facts
        both = replace(of_a, pinned=pinned(subject, "conv2"))  # whose values are larger
        facts = ask(both, "channel", view, channel=3).facts
        assert facts["ticks"] == facts["pair"]["a"]["ticks"] != alone["ticks"]

    def test_a_can_be_asked_for_by_itself_also_of_another_shape(
        self, model: Model, both: Subject, of_a: Subject
    ) -> None:
        facts = ask(both, "channel", VIEW, channel=3, of="a").facts
        a = maps_of(of_a, "conv2")[3]
        np.testing.assert_array_equal(floats(facts["values"], *a.shape), a)
        assert facts["title"] == "Channel 3 of A"
        assert facts["caption"] == f"cat · {of_a.model_title}"
        assert "pair" not in facts
        with pytest.raises(SettingError, match="Choose from a, b"):
            ask(both, "channel", VIEW, channel=0, of=["a"])
        with pytest.raises(NotThereError, match="Nothing is pinned as A"):
            ask(of_a, "channel", VIEW, channel=0, of="a")
        subject = subject_of(model, pinned=pinned(of_a, "conv1"))
        assert "pair" not in ask(subject, "channel", VIEW, channel=3).facts
        a = maps_of(of_a, "conv1")[3]
        facts = ask(subject, "channel", VIEW, channel=3, of="a").facts
        np.testing.assert_array_equal(floats(facts["values"], *a.shape), a)
        with pytest.raises(NotThereError, match="conv1 has no channel 4: its channels are 0 to 3"):
            ask(subject, "channel", VIEW, channel=4, of="a")


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
    expected = hookviz.draw_network(subject.model, subject.model_input)
    assert answer.data == expected.figure_bytes(kind)


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

from collections.abc import Mapping

import pytest

import hookviz
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.ui import recent_images, streamlit_internals
from hookviz.ui.lenses.leads import _explorer_view, lead_to_channel, lead_to_image
from hookviz.ui.link import words
from tests.pictures import picture


def stand_in(monkeypatch: pytest.MonkeyPatch, query: dict[str, str]) -> None:
    """Have a session with this query, outside of a run."""

    def write(changes: Mapping[str, str | None]) -> None:
        for name, text in changes.items():
            if text is None:
                query.pop(name, None)
            else:
                query[name] = text

    monkeypatch.setattr("streamlit.session_state", {})
    monkeypatch.setattr("streamlit.query_params", query)
    monkeypatch.setattr(streamlit_internals, "write_query", write)


def test_a_conv_layer_what_followed_it_and_blocks_are_in_the_explorer() -> None:
    model = hookviz.load_model("squeezenet")
    trace = layer_trace(model, own_shape(model))
    for layer, shown, after in (
        ("features.3.squeeze", "features.3.squeeze", None),
        ("features.3.squeeze_activation", "features.3.squeeze", "ReLU"),
        ("features.2", "features.0", "MaxPool2d"),
        ("classifier.0", "classifier.0", None),  # after what joins several layers
        ("features.3", "features.3", None),
    ):
        assert _explorer_view(trace, layer) == (shown, after)
        assert lead_to_channel(trace, layer) is not None
    assert lead_to_channel(trace, "nonsense") is None


def test_a_channel_that_is_led_to_counts_more_than_those_named_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link = {"lens": "ablate", "channel": "5", "ablate-channels": "0, 3", "ablate-mode": "scale"}
    stand_in(monkeypatch, link)
    model = hookviz.load_model("shapesnet")
    trace = layer_trace(model, own_shape(model))
    assert lead_to_channel(trace, "head") is None  # which puts out no maps
    lead = lead_to_channel(trace, "stem.first.conv")
    assert lead is not None
    lead(7, None, (3, 3))
    assert words() == {"channel": "7", "ablate-mode": "scale"}


def test_samples_and_what_is_looked_at_are_led_to_and_others_are_not() -> None:
    for sample in samples():
        assert lead_to_image(reading.read(sample.path).digest, "") is not None
    assert lead_to_image("something", "something") is not None
    assert lead_to_image("something", "else") is None
    assert lead_to_image("", "") is None


def test_a_sample_and_a_recent_image_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    link = {"image": "Camera"}
    stand_in(monkeypatch, link)
    image = reading.read(picture())
    recent_images.remember("mine", b"file", image)
    to_mine = lead_to_image(image.digest, "")
    to_star = lead_to_image(reading.read(samples()[1].path).digest, "")
    assert to_mine is not None
    assert to_star is not None
    to_mine()
    assert (link["image"], link["upload"]) == ("Upload", "mine")
    to_star()
    assert "image" not in link
    assert link["sample"] == samples()[1].name

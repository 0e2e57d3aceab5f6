from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.questions import asked
from tests.ui.test_page import opened

PIN_TWICE = """
from types import SimpleNamespace

import streamlit as st

from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.types import ActivationKey
from hookviz.ui.explorer.pinned_view import PIN, model_title, pin
from hookviz.ui.state import ModelChoice, Shown

sample = samples()[0]
shown = Shown(reading.read(sample.path), sample.alt, sample.path)
links = []
for number in (1, 2):
    file = SimpleNamespace(file_id=f"file {number}")
    choice = ModelChoice(catalog.described_models()[0], "yours", file)
    pin(shown, choice, ActivationKey("conv", 1, ("mask",)), size=96, whole=True)
    links.append(st.query_params[PIN])
    st.text(model_title(choice.spec.title, choice.weights, choice.mask))
st.session_state["links"] = links
"""


SILENT = PIN_TWICE.replace(
    '"yours", file)', '"random", mask=ChannelMask("conv", (number,)))'
).replace(
    "import reading",
    "import reading\nfrom hookviz.explaining.patching.channel_mask import ChannelMask",
)


def test_a_network_with_silent_channels_is_a_view_of_its_own() -> None:
    app = AppTest.from_string(SILENT).run(timeout=30)
    assert not app.exception
    assert [parse_qs(link)["silenced"] for link in app.session_state["links"]] == [
        ["conv:1"],
        ["conv:2"],
    ]
    assert app.text[0].value.endswith(", random weights without 1 channel of conv")


def test_two_files_of_weights_are_two_views() -> None:
    app = AppTest.from_string(PIN_TWICE).run(timeout=30)
    assert not app.exception
    one, other = app.session_state["links"]
    assert one != other
    parts = parse_qs(one)
    assert (parts["layer"], parts["step"]) == (["conv"], ["conv#1[mask]"])
    assert (parts["size"], parts["whole"], parts["sample"]) == (["96"], ["1"], ["cat"])
    assert parts["name"] == ["Cat"]
    assert app.text[0].value.endswith(", your weights")


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("junk", "names no image, model and layer"),
        ("x" * 1500, "names no image, model and layer"),
        (
            "name=me.jpg&upload=1234&model=ShapesNet&weights=pretrained&size=&whole=0&layer=a&step=a",
            "somebody's own photograph",
        ),
        (
            "sample=cat&name=Cat&model=NoNet&weights=random&size=&whole=0&layer=a&step=a",
            "model 'NoNet', which is not here",
        ),
        (
            "sample=cat&name=Cat&model=ResNet-18&weights=pretrained&size=&whole=0&layer=conv1&step=conv1",
            "not on this machine yet",
        ),
        (
            "sample=cat&name=Cat&model=ResNet-18&weights=yours&size=&whole=0&layer=conv1&step=conv1",
            "somebody's own weights",
        ),
        (
            "sample=cat&name=Cat&model=ResNet-18&weights=random&size=&whole=0&layer=conv9&step=conv9",
            "conv9",
        ),
        (
            "sample=cat&name=Cat&model=ResNet-18&weights=random&size=9999&whole=0&layer=conv1&step=conv1",
            "9999",
        ),
    ],
)
def test_a_link_to_a_view_that_is_not_here_says_so(
    link: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    page = opened(model="ShapesNet", a=link)
    assert says in asked(page, "tiles")["compare"]["warning"]
    assert not page.error


OWN = PIN_TWICE.replace(", sample.path)", ', upload="0a1b2c3d")')


def test_ones_own_image_is_pinned_as_it_is_shown_whatever_the_link_says_yet() -> None:
    app = AppTest.from_string(OWN).run(timeout=30)
    assert not app.exception
    assert parse_qs(app.session_state["links"][0])["upload"] == ["0a1b2c3d"]

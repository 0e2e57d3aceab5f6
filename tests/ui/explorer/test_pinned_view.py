from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from tests.ui.pages import opened
from tests.ui.questions import asked

PIN_TWICE = """
from types import SimpleNamespace

import streamlit as st

from hookviz.explaining.patching.channel_mask import ChannelMask
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.models import catalog
from hookviz.types import ActivationKey
from hookviz.ui.explorer.pinned_view import PIN, model_title, pin
from hookviz.ui.state import ModelChoice, ImageChoice

sample = samples()[0]
links = []
for number in (1, 2):
    shown = ImageChoice(reading.read(sample.path), sample.alt, IMAGE)
    choice = ModelChoice(catalog.described_models()[0], CHOICE)
    pin(shown, choice, ActivationKey("conv", 1, ("mask",)), size=96, whole=True)
    links.append(st.query_params[PIN])
    st.text(model_title(choice.spec.title, choice.weights, choice.mask))
st.session_state["links"] = links
"""


def pinned(image: str, choice: str) -> tuple[list[dict[str, list[str]]], str]:
    """The links of two views that are pinned, and what the network of the first is called."""
    app = AppTest.from_string(PIN_TWICE.replace("IMAGE", image).replace("CHOICE", choice))
    assert not app.run(timeout=30).exception
    return [parse_qs(link) for link in app.session_state["links"]], app.text[0].value


def test_a_network_with_silent_channels_is_a_view_of_its_own() -> None:
    silent = '"random", mask=ChannelMask("conv", (number,))'
    links, title = pinned("sample.path", silent)
    assert [link["silenced"] for link in links] == [["conv:1"], ["conv:2"]]
    assert title.endswith(", random weights without 1 channel of conv")


def test_two_files_of_weights_are_two_views_and_ones_own_image_is_pinned_as_it_is_shown() -> None:
    file = '"yours", SimpleNamespace(file_id=f"file {number}")'
    (parts, other), title = pinned("sample.path", file)
    assert parts != other
    assert (parts["layer"], parts["step"]) == (["conv"], ["conv#1[mask]"])
    assert (parts["size"], parts["whole"], parts["sample"]) == (["96"], ["1"], ["cat"])
    assert parts["name"] == ["Cat"]
    assert title.endswith(", your weights")
    (parts, _), _ = pinned('upload="0a1b2c3d"', file)
    assert parts["upload"] == ["0a1b2c3d"]


OF_CAT = "sample=cat&name=Cat&whole=0&"
RESNET = f"{OF_CAT}model=ResNet-18&"


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
            f"{OF_CAT}model=NoNet&weights=random&size=&layer=a&step=a",
            "model 'NoNet', which is not here",
        ),
        (f"{RESNET}weights=pretrained&size=&layer=conv1&step=conv1", "not on this machine yet"),
        (f"{RESNET}weights=yours&size=&layer=conv1&step=conv1", "somebody's own weights"),
        (f"{RESNET}weights=random&size=&layer=conv9&step=conv9", "conv9"),
        (f"{RESNET}weights=random&size=9999&layer=conv1&step=conv1", "9999"),
    ],
)
def test_a_link_to_a_view_that_is_not_here_says_so(
    link: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    page = opened(model="ShapesNet", a=link)
    assert says in asked(page, "tiles")["compare"]["warning"]
    assert not page.error

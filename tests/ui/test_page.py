"""The page as Streamlit runs it; tests/e2e has what only a browser shows."""

import time
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from torch import nn

import hookviz
from hookviz.models import catalog, hugging_face, user_models
from hookviz.models.bundled import BUNDLED
from hookviz.models.fetching import downloads
from hookviz.models.fetching.transfers import RetryLimits
from hookviz.settings import settings
from scripts.visitor import unpacked
from tests.networks import Tiny, seeded
from tests.repositories import cached, vit
from tests.ui.pages import click, drawn, labels, opened, texts, write_fragment
from tests.ui.questions import asked, words

pytestmark = pytest.mark.usefixtures("no_weights_anywhere")


def test_the_first_page_shows_a_model_that_knows_photographs_on_a_sample() -> None:
    page = opened()
    assert page.selectbox(key="model").value == "SqueezeNet (photographs)"
    assert not [*page.error, *page.warning]
    assert asked(page, "layers")["layer"] == "features.0"
    assert len(asked(page, "tiles")["order"]) == 64
    facts = "conv layer 1 of 26 · 3×3 convolution · stride 2 · 3 → 64 channels of 111×111"
    assert facts in words(asked(page, "field")["facts"])
    assert "knows" not in "".join(labels(page))
    assert "knows" not in "".join(labels(opened(sample="star", weights="random")))


@pytest.mark.parametrize(
    ("link", "button", "model"),
    [
        ({"sample": "star"}, "ShapesNet knows drawings", "ShapesNet"),
        ({"model": "ShapesNet"}, "SqueezeNet knows photographs", "SqueezeNet (photographs)"),
    ],
)
def test_the_bundled_model_that_knows_such_images_is_one_click_away(
    link: dict[str, str], button: str, model: str
) -> None:
    page = opened(**link)
    click(page, button)
    assert page.selectbox(key="model").value == model
    assert "knows" not in "".join(labels(page))
    assert not [*page.error, *page.warning]


def test_the_page_records_what_its_explorer_asks_for() -> None:
    page = opened(sample="rainbow", size="192 px")
    assert "from this session's cache" in asked(page, "tiles")["cost"]
    write_fragment(page, layer="features.3.squeeze")
    assert "from this session's cache" in asked(page, "tiles")["cost"]


def test_a_link_to_any_layer_with_maps_lists_them_all_by_itself() -> None:
    page = opened(model="ResNet-18", weights="random", layer="layer1", channel="3")
    layers = asked(page, "layers")
    assert (layers["layer"], layers["listed"]) == ("layer1", "maps")
    names = [option["name"] for option in layers["options"]]
    assert names[names.index("layer1") - 1 :][:3] == ["maxpool", "layer1", "layer1.0"]
    facts = words(asked(page, "field")["facts"])
    assert "layer 5 of 66 · Sequential · 64 → 64 channels of 56×56" in facts
    why = asked(page, "cell", channel=3, row=0, column=0)
    assert "Sequential is a block of 10 layers" in why["info"]
    assert not why["canWalk"]
    write_fragment(page, layer="fc")
    layers = asked(page, "layers")
    assert layers["layer"] == "layer4.1.conv2"
    assert "fc puts out 1000 numbers, no maps" in layers["warning"]


def test_a_link_to_what_is_not_here_says_so_and_goes_on() -> None:
    page = opened(model="ResNet-35", layer="features.O")
    assert "model 'ResNet-35', which is not here. The nearest: ResNet-50, ResNet-34" in texts(
        page.warning
    )
    assert "features.0" in asked(page, "layers")["warning"]
    assert page.selectbox(key="model").value == "SqueezeNet (photographs)"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Downloads try again at once; with a person's patience that takes seven seconds."""
    assert downloads.start.__kwdefaults__ is not None
    monkeypatch.setitem(downloads.start.__kwdefaults__, "limits", RetryLimits(backoff=0.01))


def refused() -> AppTest:
    """A page whose download has failed, which takes a few looks at it."""
    page = opened(model="ResNet-18", family="ResNet")
    click(page, "Download 47 MB")
    for _ in range(300):
        if page.error:
            return page
        page.run()
        time.sleep(0.05)
    return pytest.fail("the download never failed")


def test_no_download_begins_unasked_and_a_checkpoint_is_asked_for(tmp_path: Path) -> None:
    page = opened(model="ResNet-18")
    assert "The pretrained weights of ResNet-18 (47 MB) are not on this" in texts(page.info)
    assert "Download 47 MB" in labels(page)
    page.run()
    assert not page.session_state["downloads"]
    assert not list(tmp_path.rglob("*"))
    assert not page.error
    page = opened(model="SqueezeNet 1.1", weights="yours")
    assert "Upload weights for SqueezeNet 1.1" in texts(page.info)


def test_models_that_are_here_are_listed_first_and_marked(tmp_path: Path) -> None:
    folder = tmp_path / "hub" / "checkpoints"
    folder.mkdir(parents=True)
    catalog.weights_path("vgg16").touch()
    page = opened()
    box = page.selectbox(key="model")
    boxed = [network.title for network in BUNDLED.values()]
    assert box.options[: len(boxed) + 2] == [*boxed, "VGG-16", "AlexNet"]
    assert "on this machine" in texts(page.caption)
    page.selectbox(key="family").select("VGG").run()
    box = page.selectbox(key="model")
    assert box.options[:2] == ["VGG-16", "VGG-11"]
    assert box.value == "VGG-11"  # a link without a model means the same on every machine
    assert "532 MB download" in texts(page.caption) or "531 MB download" in texts(page.caption)
    page.selectbox(key="family").select("On this machine").run()
    assert page.selectbox(key="model").options[-2:] == ["VGG-16", "VGG-11"]


@pytest.mark.usefixtures("impatient")
def test_a_failed_download_is_tried_again_only_when_asked_and_offers_what_works() -> None:
    page = refused()
    assert "The pretrained weights of ResNet-18 (47 MB) are not on this" in texts(page.error)
    page.run()
    assert page.error
    click(page, "Try again")
    assert not page.error
    for button, shown, channels in (
        ("ResNet-18 with random weights", "ResNet-18", 64),
        ("ShapesNet", "ShapesNet", 32),
    ):
        page = refused()
        click(page, button)
        assert not page.error
        assert page.selectbox(key="model").value == shown
        assert ("random weights" in texts(page.markdown)) == ("random" in button)
        assert len(asked(page, "tiles")["order"]) == channels


def test_own_models_are_listed_first() -> None:
    model = hookviz.wrap(seeded(Tiny), hookviz.Preprocess(resize=16, crop=16), name="mine")
    user_models.add(model)
    try:
        page = opened()
        assert page.selectbox(key="model").options[0] == "mine"
        assert [each["name"] for each in asked(page, "layers")["options"]] == ["conv1", "conv2"]
        assert page.selectbox(key="model").value == "mine"
    finally:
        user_models.remove(model)


@pytest.fixture
def small_vit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of the one network in this machine's cache of Hugging Face's, which is its title too."""
    cached(vit(), "somebody/small-vit", tmp_path / "hub", monkeypatch)
    return "hf:somebody/small-vit"


def test_networks_of_hugging_faces_cache_are_listed_where_the_owner_says_so(
    small_vit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKVIZ_HUGGING_FACE", "1")
    settings.cache_clear()
    page = opened()
    assert page.selectbox(key="model").value == "SqueezeNet (photographs)"
    assert small_vit in page.selectbox(key="model").options
    page = opened(model=small_vit)
    assert page.selectbox(key="model").value == small_vit
    assert "from this machine's Hugging Face cache" in texts(page.caption)
    layers = [layer["name"] for layer in asked(page, "layers")["options"]]
    assert "vit.embeddings.patch_embeddings.projection" in layers
    assert not page.error


@pytest.mark.parametrize(("name", "listed"), [("small-vit", "0"), ("another", "1")])
def test_a_link_loads_no_network_that_is_not_listed(
    small_vit: str, name: str, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKVIZ_HUGGING_FACE", listed)
    settings.cache_clear()
    loaded: list[str] = []
    monkeypatch.setattr(hugging_face, "load", loaded.append)
    page = opened(model=f"hf:somebody/{name}")
    assert page.selectbox(key="model").value == "SqueezeNet (photographs)"
    assert f"hf:somebody/{name}" in texts(page.warning)
    opened(a=f"model=hf%3Asomebody%2F{name}&weights=own")
    assert loaded == []


def test_input_size_and_whole_image_change_the_layers() -> None:
    page = opened(model="ShapesNet")
    page.selectbox(key="size").select("256 px").run()
    assert "32 channels of 128×128" in words(asked(page, "field")["facts"])
    page.toggle(key="whole").set_value(True).run()
    assert "256 of 451×300 pixels" in drawn(page)
    assert not page.exception


@pytest.mark.parametrize("query", [{}, {"lens": "trace"}])
def test_a_network_that_fails_in_the_middle_says_where(query: dict[str, str]) -> None:
    layers = nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(5, 6, 3)
    model = hookviz.wrap(nn.Sequential(*layers), hookviz.Preprocess(16, 16), name="failing")
    user_models.add(model)
    try:
        page = opened(model="failing", **query)
    finally:
        user_models.remove(model)
    said = texts([*page.error, *page.warning, *page.info])
    assert said.count("fails on") == 1
    assert (
        "2 (Conv2d), which takes 5 channels in N×C×H×W, of at least 3×3 with padding, "
        "fails on 1×4×14×14, after 0, 1: Given groups=1"
    ) in said
    assert "Traceback" not in said


ADDRESS_PAGE = """
import streamlit as st
from hookviz.ui.page import _send_address
from hookviz.ui.link import address, settle_query, update_link

settle_query()
st.session_state["address"] = known = address()
if st.session_state.get("draws"):
    known.drawn = known.view
st.button("channel", on_click=update_link, kwargs={"channel": "5"})
st.button("star", on_click=update_link, kwargs={"sample": "star"})
st.button("both", on_click=update_link, kwargs={"channel": "6", "sample": "flower"})
if st.button("in the run"):
    update_link(channel=None)
_send_address()
"""


def sent_address(page: AppTest) -> dict[str, Any] | None:
    """What the browser gets of the last run; None where there is nothing to say."""
    assert not page.exception
    if not page.get("bidi_component"):
        return None
    facts, _ = unpacked(page.get("bidi_component")[0].proto.bytes)
    return {name: facts[name] for name in ("view", "changes", "number", "isStep")}


def press(page: AppTest, label: str) -> dict[str, Any] | None:
    next(button for button in page.button if button.label == label).click().run()
    return sent_address(page)


def test_a_click_is_one_step_of_the_browsers_history() -> None:
    page = AppTest.from_string(ADDRESS_PAGE, default_timeout=60).run()
    assert sent_address(page) is None
    assert press(page, "star") is None  # the query alone
    changed = {"view": None, "changes": {"channel": "5"}, "number": 1}
    assert press(page, "channel") == changed | {"isStep": True}
    page.session_state["address"].receive({"fragment": "channel=5", "number": 1})
    both = {"view": None, "changes": {"channel": "6"}, "number": 2}
    assert press(page, "both") == both | {"isStep": False}  # the query's step has it
    assert page.query_params == {"sample": "flower"}
    mended = {"view": None, "changes": {"channel": None}, "number": 3}
    assert press(page, "in the run") == mended | {"isStep": False}


def test_a_page_that_draws_by_the_view_says_by_which() -> None:
    page = AppTest.from_string(ADDRESS_PAGE, default_timeout=60).run()
    page.session_state["draws"] = True
    page.session_state["address"].receive({"fragment": "layer=conv1", "number": 0})
    drawn = {"view": {"layer": "conv1"}, "changes": {}, "number": 0, "isStep": False}
    assert sent_address(page.run()) == drawn
    page.session_state["draws"] = False
    assert sent_address(page.run()) is None

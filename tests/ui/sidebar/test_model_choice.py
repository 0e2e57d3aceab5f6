import re

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.language.speaking import speaking
from hookviz.models import timm_models
from hookviz.models.catalog import find_model
from hookviz.ui.sidebar.model_choice import _about

HAN = "[\u4e00-\u9fff]"


def _families() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs this text by itself

    from hookviz.ui.sidebar.model_choice import pick_model  # noqa: PLC0415

    st.write(f"chosen {pick_model(st.container()).spec.name}")


@pytest.fixture
def page() -> AppTest:
    timm_models.specs.cache_clear()
    return AppTest.from_function(_families)


def test_a_page_does_not_wait_for_timm(page: AppTest) -> None:
    families = page.run().selectbox[0].options
    assert "ResNet" in families
    assert not [family for family in families if family.startswith("timm")]
    timm_models.specs()
    assert [family for family in page.run().selectbox[0].options if family.startswith("timm")]


def test_a_link_to_one_of_timm_s_models_does(page: AppTest) -> None:
    pytest.importorskip("timm")
    page.query_params["family"] = "timm resnet"
    page.query_params["model"] = "timm/resnet10t"
    assert page.run().markdown[0].value == "chosen timm/resnet10t"


@pytest.mark.parametrize("asked", ["resnet50", "ResNet-50"])
def test_a_link_names_a_model_as_python_does_or_as_the_page(page: AppTest, asked: str) -> None:
    page.query_params["model"] = asked
    for _ in range(2):
        assert page.run().markdown[0].value == "chosen resnet50"
        assert not page.warning


@pytest.mark.parametrize("weights", ["pretrained", "random", "yours"])
def test_in_chinese_no_blank_stands_between_two_characters(weights: str) -> None:
    for name in ("shapesnet", "shapesvit", "squeezenet", "resnet34"):
        with speaking("zh_CN"):
            about = _about(find_model(name), weights)
        assert re.search(HAN, about)
        assert not re.search(rf"{HAN} {HAN}", about)


def _silent() -> None:
    from contextlib import nullcontext  # noqa: PLC0415 - AppTest runs this text by itself

    import streamlit as st  # noqa: PLC0415

    from hookviz.models import catalog  # noqa: PLC0415
    from hookviz.ui.link import settle_query  # noqa: PLC0415
    from hookviz.ui.sidebar.model_choice import silence_channels  # noqa: PLC0415
    from hookviz.ui.state import ModelChoice  # noqa: PLC0415

    settle_query()
    choice = ModelChoice(catalog.find_model("shapesnet"), "pretrained")
    st.text(f"silent {silence_channels(choice, nullcontext).mask}")


@pytest.fixture
def silent_page() -> AppTest:
    return AppTest.from_function(_silent, default_timeout=60)


def test_channels_are_silent_until_they_are_brought_back(silent_page: AppTest) -> None:
    silent_page.query_params["silenced"] = "stem.first.conv:0-2,7"
    assert silent_page.run().text[0].value == "silent stem.first.conv:0-2,7"
    said = silent_page.caption[0].value.replace("\\", "")
    assert said == "Silent: 4 channels of stem.first.conv (0-2, 7)"
    assert silent_page.button[0].click().run().text[0].value == "silent None"
    assert "silenced" not in silent_page.query_params
    assert not [*silent_page.caption, *silent_page.button]


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("junk", "names no channels of a layer"),
        ("stem.first.conv:0-99999", "at most 10,000"),
        ("x" * 5000, "names no channels of a layer"),
        ("stem.first.conf:0", "Did you mean 'stem.first.conv'"),
        ("stem.first.conv:32", "its channels are 0 to 31"),
        ("stem.first.norm:0", "is a BatchNorm2d"),
        (":0", "names no channels of a layer"),
        ("<script>:0", "no conv layer called"),
    ],
)
def test_a_link_that_names_none_of_its_channels_says_so_and_is_left_aside(
    silent_page: AppTest, link: str, says: str
) -> None:
    silent_page.query_params["silenced"] = link
    silent_page.run()
    assert not silent_page.exception
    assert says in silent_page.warning[0].value.replace("\\", "")
    assert silent_page.text[0].value == "silent None"
    assert not silent_page.run().warning  # once

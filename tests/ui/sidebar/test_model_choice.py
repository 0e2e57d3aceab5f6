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

    st.write(f"chosen {pick_model().spec.name}")


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

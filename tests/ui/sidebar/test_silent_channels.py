import pytest
from streamlit.testing.v1 import AppTest


def _silent() -> None:
    from contextlib import nullcontext  # noqa: PLC0415 - AppTest runs this text by itself

    import streamlit as st  # noqa: PLC0415

    from hookviz.models import catalog  # noqa: PLC0415
    from hookviz.ui.link import settle_query  # noqa: PLC0415
    from hookviz.ui.sidebar.silent_channels import keep_silent  # noqa: PLC0415
    from hookviz.ui.state import ModelChoice  # noqa: PLC0415

    settle_query()
    choice = ModelChoice(catalog.find_model("shapesnet"), "pretrained")
    st.text(f"silent {keep_silent(choice, nullcontext).mask}")


@pytest.fixture
def page() -> AppTest:
    return AppTest.from_function(_silent, default_timeout=60)


def test_channels_are_silent_until_they_are_brought_back(page: AppTest) -> None:
    page.query_params["silenced"] = "stem.first.conv:0-2,7"
    assert page.run().text[0].value == "silent stem.first.conv:0-2,7"
    said = page.caption[0].value.replace("\\", "")
    assert said == "Silent: 4 channels of stem.first.conv (0-2, 7)"
    assert page.button[0].click().run().text[0].value == "silent None"
    assert "silenced" not in page.query_params
    assert not [*page.caption, *page.button]


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
    page: AppTest, link: str, says: str
) -> None:
    page.query_params["silenced"] = link
    page.run()
    assert not page.exception
    assert says in page.warning[0].value.replace("\\", "")
    assert page.text[0].value == "silent None"
    assert not page.run().warning  # once

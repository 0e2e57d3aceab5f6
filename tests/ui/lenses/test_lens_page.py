"""The state of lenses and of the explorer, as Streamlit runs the page without a browser."""

import pytest

from hookviz.lenses.contract import running
from tests.ui.test_page import opened, texts

GRAD_CAM = "Class activation maps: Grad-CAM and its relatives"


def test_every_lens_is_offered_under_its_group() -> None:
    page = opened()
    listed = [f"{lens.group}: {lens.title}" for lens in running.list_lenses()]
    assert page.selectbox(key="lens").options == ["Channels", *listed]


def test_a_lens_begins_at_the_layer_that_it_is_made_for() -> None:
    page = opened(lens=GRAD_CAM)
    assert page.selectbox(key="layer").value == "stage3.relu_out"
    assert "stage3.relu_out speaks for it" in texts(page.markdown)
    page = opened(lens=GRAD_CAM, layer="stage1.first.conv")
    assert page.selectbox(key="layer").value == "stage1.first.conv"


def test_back_at_the_channels_the_conv_layer_before_is_shown() -> None:
    page = opened(lens=GRAD_CAM)
    page.selectbox(key="lens").select("Channels").run()
    assert page.selectbox(key="layer").value == "stage3.shortcut.conv"
    assert not page.warning
    assert "All 128 channels." in texts(page.caption)


def test_another_model_starts_the_lens_anew() -> None:
    page = opened(lens=GRAD_CAM)
    page.selectbox(key="model").select("SqueezeNet 1.1").run()
    page.segmented_control(key="weights").set_value("random").run()
    assert page.selectbox(key="layer").value in page.selectbox(key="layer").options
    assert "speaks for it" in texts(page.markdown)
    assert not page.exception


def test_choices_come_from_the_link() -> None:
    page = opened(lens=GRAD_CAM, **{"grad-cam-method": "LayerCAM", "grad-cam-target": "star"})
    assert page.selectbox(key="grad-cam-method").value == "LayerCAM"
    assert texts(page.markdown).startswith("star: score")
    page.selectbox(key="grad-cam-method").select("Eigen-CAM").run()
    assert "Eigen-CAM asks for no class" in texts(page.markdown)


def test_a_choice_that_means_nothing_is_explained() -> None:
    page = opened(lens="What if: Switch channels off", layer="stem.first.conv")
    page.text_input(key="ablate-channels").set_value("7-5").run()
    assert "channel numbers such as" in texts(page.info)
    page.text_input(key="ablate-channels").set_value("5-7").run()
    assert not page.info


@pytest.mark.parametrize(
    ("origin", "says"),
    [
        ("One cell", "which the sum gives too"),
        ("Kernel", "Norm (root of the sum of squares)"),
    ],
)
def test_where_a_channel_comes_from_is_in_the_link(origin: str, says: str) -> None:
    page = opened(channel="5", cell="3,4", origin=origin)
    assert says in texts(page.markdown)


def test_a_cell_says_what_it_sees() -> None:
    page = opened(channel="1", layer="stage2.second.conv")
    assert not page.info
    assert "receptive field: 43×43 pixels" in texts(page.caption)

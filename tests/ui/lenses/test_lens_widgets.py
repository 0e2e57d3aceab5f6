"""The widgets of a lens, as Streamlit runs the page without a browser."""

from tests.ui.lenses.test_lens_choice import GRAD_CAM
from tests.ui.test_page import opened, texts

ABLATION = "ablate"


def test_choices_come_from_the_link() -> None:
    choices = {"grad-cam-method": "LayerCAM", "grad-cam-target": "star"}
    page = opened(model="ShapesNet", lens=GRAD_CAM, **choices)
    assert page.selectbox(key="grad-cam-method").value == "LayerCAM"
    assert texts(page.markdown).startswith("star: score")
    page.selectbox(key="grad-cam-method").select("Eigen-CAM").run()
    assert "Eigen-CAM asks for no class" in texts(page.markdown)


def test_a_choice_that_means_nothing_is_explained() -> None:
    page = opened(model="ShapesNet", lens=ABLATION, layer="stem.first.conv")
    page.text_input(key="ablate-channels").set_value("7-5").run()
    assert "channel numbers such as" in texts(page.info)
    page.text_input(key="ablate-channels").set_value("5-7").run()
    assert not page.info

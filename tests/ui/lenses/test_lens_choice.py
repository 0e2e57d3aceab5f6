import pytest

from hookviz.ui.lenses.lens_choice import ALL
from tests.ui.pages import link_of, opened, texts
from tests.ui.questions import asked

GRAD_CAM = "grad-cam"


def test_from_anywhere_a_button_leads_to_the_questions_and_one_to_the_channels() -> None:
    page = opened()
    assert not [each for each in page.button if each.key == "hv-view-channels"]
    page.button(key="hv-view-all").click().run()
    assert page.query_params["lens"] in (ALL, [ALL])
    assert not page.exception
    page = opened(lens=GRAD_CAM)
    page.button(key="hv-view-channels").click().run()
    assert "lens" not in page.query_params


def test_a_link_names_a_lens_by_its_slug_or_as_links_were_written_before() -> None:
    for link in ("summary", "The network: Summary"):
        page = opened(lens=link)
        assert page.header[0].value == "What is the network made of?"
        assert page.query_params["lens"] in ("summary", ["summary"])
    page = opened(lens="summery")
    assert "The nearest: summary" in texts(page.warning)
    assert asked(page, "layers")["layer"]


def test_a_lens_begins_at_the_layer_that_it_is_made_for() -> None:
    page = opened(model="ShapesNet", lens=GRAD_CAM)
    assert asked(page, "layers")["layer"] == "stage3.relu_out"
    assert "stage3.relu_out speaks for it" in texts(page.markdown)
    page = opened(model="ShapesNet", lens=GRAD_CAM, layer="stage1.first.conv")
    assert asked(page, "layers")["layer"] == "stage1.first.conv"


@pytest.mark.parametrize(
    ("model", "lens", "layer", "shown", "says"),
    [
        ("ResNet-18", GRAD_CAM, "layer4", "layer4", "layer4 speaks for it"),
        ("ResNet-18", "embedding", "avgpool", "avgpool", "512 numbers, the mean of each channel"),
        ("ResNet-18", "kernels", "layer2", "layer2.1.conv2", ""),  # its last conv layer
        (
            *("GoogLeNet", "embedding", "conv1.relu() after bn", "conv1.bn"),
            "can't look at conv1.relu() after bn, and looks at conv1.bn before it.",
        ),
    ],
)
def test_a_lens_looks_at_a_block_or_at_what_it_can_look_at_in_it(
    model: str, lens: str, layer: str, shown: str, says: str
) -> None:
    page = opened(model=model, weights="random", lens=lens, layer=layer)
    assert asked(page, "layers")["layer"] == shown
    assert says in texts(page.markdown) + texts(page.caption)
    assert not page.warning
    if shown == layer:
        page.button(key="hv-view-channels").click().run()
        assert asked(page, "layers")["layer"] == layer


def test_back_at_the_channels_the_layer_and_the_list_of_before_are_there() -> None:
    page = opened(model="ShapesNet", lens=GRAD_CAM)
    assert "layer" not in link_of(page)
    page.button(key="hv-view-channels").click().run()
    layers = asked(page, "layers")
    assert layers["layer"] == layers["options"][0]["name"]
    chosen = {"layer": "stage3.relu_out", "layers": "maps", "sort": "mean", "after": "ReLU"}
    page = opened(model="ShapesNet", lens="kernels", **chosen)
    shown = asked(page, "layers")["layer"]
    says = f"Kernels can't look at stage3.relu_out, and looks at {shown} before it."
    assert says in texts(page.caption)
    page.button(key="hv-view-channels").click().run()
    layers = asked(page, "layers")
    assert (layers["layer"], layers["listed"]) == ("stage3.relu_out", "maps")
    assert chosen.keys() <= link_of(page).keys()
    assert not page.warning


def test_another_model_starts_the_lens_anew() -> None:
    page = opened(lens=GRAD_CAM)
    page.selectbox(key="model").select("SqueezeNet 1.1").run()
    page.segmented_control(key="weights").set_value("random").run()
    layers = asked(page, "layers")
    assert layers["layer"] in [option["name"] for option in layers["options"]]
    assert "speaks for it" in texts(page.markdown)
    assert not page.exception

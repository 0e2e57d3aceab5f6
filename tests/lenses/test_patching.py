"""The lens takes parts from the other image as `hookviz.patch` does, which has tests of its own."""

import numpy as np
import pytest

import hookviz
from hookviz.drawing.panels import ChartPanel, OverlayPanel, TextPanel
from hookviz.errors import SettingError
from tests.codegen.script_cases import PVT, RESNET, SHAPESNET, SHAPESVIT, ScriptCase

SCRIPTS = (
    ScriptCase({"images": ("other.png",)}, RESNET, rounding=1e-4),
    ScriptCase(
        {"images": ("other.png",), "by": "channels", "layer": "stage3.first.conv"},
        SHAPESNET,
        rounding=1e-4,
    ),
    ScriptCase({"images": ("other.png",), "by": "heads"}, (*SHAPESVIT, *PVT), rounding=1e-4),
    ScriptCase(
        {"images": ("other.png",), "by": "cells", "layer": "stages.3.blocks.0"}, PVT, rounding=1e-4
    ),
)
NOT_IN_SCRIPT = ("direct",)

STAR, HEART = "assets/samples/star.jpg", "assets/samples/heart.jpg"
LAYER = "stage3.first.conv"


@pytest.mark.parametrize("by", ["layers", "channels", "cells"])
def test_it_is_what_patch_measures(by: str) -> None:
    model = hookviz.load_model("shapesnet")
    result = hookviz.run_lens(
        "patching", model, HEART, images=STAR, by=by, layer=LAYER, target="star"
    )
    layers = [LAYER] if by != "layers" else [info.name for info in hookviz.list_layers(model)]
    found = hookviz.patch(model, STAR, HEART, layers, target="star", by=by.removesuffix("s"))
    shares = np.array([*found.shares.values()]) if by == "layers" else found.shares[LAYER]
    np.testing.assert_allclose(result.values["shares"], shares)
    assert result.values["scores"].tolist() == [found.corrupted, found.clean]
    assert isinstance(result.panels[1], TextPanel)
    assert "on this image and 6.30 on star.jpg" in result.panels[1].text
    assert isinstance(result.panels[2], OverlayPanel if by == "cells" else ChartPanel)


def test_heads_are_those_of_the_whole_network() -> None:
    model = hookviz.load_model("shapesvit")
    result = hookviz.run_lens("patching", model, HEART, images=STAR, by="heads", target="star")
    found = hookviz.patch(model, STAR, HEART, target="star", by="head")
    np.testing.assert_array_equal(result.values["shares"], np.array([*found.shares.values()]))
    chart = result.panels[2]
    assert isinstance(chart, ChartPanel)
    best = found.table(1)[0]
    assert chart.labels[0] == f"{best.layer} [{best.part[0]}]"


def test_another_image_is_needed() -> None:
    model = hookviz.load_model("shapesnet")
    with pytest.raises(SettingError, match="no other image to take parts from"):
        hookviz.run_lens("patching", model, STAR, images=[STAR])

import pytest

import hookviz
from hookviz.errors import SettingError, UnknownLayerError
from hookviz.ui.lessons.parts.lens import PART, resolve_all
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_lens_runs_with_and_the_link_opens_it_so() -> None:
    options = with_defaults(PART, lens="grad-cam", settings="method=LayerCAM")
    facts = PART.facts(star(), options)
    result = hookviz.run_lens("grad-cam", star().model, star().model_input, method="LayerCAM")
    assert resolve_all(star(), options) == result.chosen
    assert (facts["target"], facts["method"]) == ("star", "LayerCAM")
    assert facts["layer"] == result.chosen["layer"]
    options = with_defaults(PART, lens="grad-cam", layer="last", settings="target=ring")
    last = star().trace.convs[-1].name
    assert PART.link(star(), options) == {
        "lens": "grad-cam",
        "grad-cam-target": "ring",
        "layer": last,
    }


def test_the_strongest_channel_and_cell_are_taken_of_the_first_layer_that_is_there() -> None:
    layer = star().trace.convs[1].name
    options = with_defaults(
        PART,
        lens="effective-receptive-field",
        layer=f"features.10.expand3x3, {layer}, late",
        settings="count=1; channel=strongest",
    )
    facts = PART.facts(star(), options)
    maps = hookviz.capture(star().model, star().model_input, layer)[layer].values
    assert facts["layer"] == layer
    at = (int(facts["channel"]), int(facts["row"]), int(facts["column"]))
    assert maps[at] == maps.max()


@pytest.mark.parametrize(
    ("wrong", "error", "says"),
    [
        ({"settings": "metod=LayerCAM"}, SettingError, "Did you mean method"),
        ({"controls": "targets"}, SettingError, "Did you mean target"),
        ({"settings": "method=LayerCAMs"}, SettingError, "Grad-CAM"),
        ({"layer": "stem.frist.conv"}, UnknownLayerError, "stem"),
    ],
)
def test_what_the_lens_does_not_take_is_named(
    wrong: dict[str, str], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        PART.facts(star(), with_defaults(PART, lens="grad-cam", **wrong))


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("lens", "gradcam", "grad-cam"),
        ("settings", "LayerCAM", "'LayerCAM' is not a name and a value"),
        ("panels", "image, imge", "image"),
        ("controls", "layer", "set by the lesson"),
    ],
)
def test_an_option_is_checked_before_anything_runs(name: str, value: str, told: str) -> None:
    option = next(option for option in PART.options if option.name == name)
    assert told in option.check(value)
    assert option.check("grad-cam" if name == "lens" else "") == ""

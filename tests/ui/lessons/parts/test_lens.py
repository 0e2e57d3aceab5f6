"""Any lens as a part of a lesson: what the text can name, what the link opens, what is refused."""

import pytest

import hookviz
from hookviz.errors import SettingError, UnknownLayerError
from hookviz.ui.lessons.parts.lens import PART, resolve_all
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_facts_are_what_the_lens_runs_with() -> None:
    options = with_defaults(PART, lens="grad-cam", settings="method=LayerCAM")
    facts = PART.facts(star(), options)
    assert facts["target"] == "star"
    assert facts["method"] == "LayerCAM"
    result = hookviz.run_lens("grad-cam", star().model, star().model_input, method="LayerCAM")
    assert resolve_all(star(), options) == result.chosen
    assert facts["layer"] == result.chosen["layer"]


def test_a_link_has_the_settings_as_the_lens_has_them_on_the_page() -> None:
    options = with_defaults(PART, lens="grad-cam", layer="last", settings="target=ring")
    last = star().trace.convs[-1].name
    assert PART.link(star(), options) == {
        "lens": "grad-cam",
        "grad-cam-target": "ring",
        "layer": last,
    }


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"settings": "metod=LayerCAM"}, "Did you mean method"),
        ({"controls": "targets"}, "Did you mean target"),
        ({"settings": "method=LayerCAMs"}, "Grad-CAM"),
    ],
)
def test_what_the_lens_does_not_take_is_named(wrong: dict[str, str], told: str) -> None:
    with pytest.raises(SettingError, match=told):
        PART.facts(star(), with_defaults(PART, lens="grad-cam", **wrong))


def test_a_layer_that_is_not_there_is_named() -> None:
    with pytest.raises(UnknownLayerError, match="stem"):
        PART.facts(star(), with_defaults(PART, lens="grad-cam", layer="stem.frist.conv"))


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

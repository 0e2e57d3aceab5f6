"""Every control of every lens, used once, as Streamlit runs the page without a browser.

Those of our own scripts are used in a browser too, in tests/e2e/test_lenses.py.
"""

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.lenses.contract import parameters, regions, running
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.shared_choices import AttendingLayer
from hookviz.ui.lenses.lens_choice import layers_at_side
from hookviz.ui.state import TARGET
from tests.pictures import encoded, picture
from tests.ui.pages import opened, texts

pytestmark = pytest.mark.usefixtures("no_weights_anywhere")

FEW = {"toaster": "8", "maximize": "8", "dream": "8", "inversion": "8", "integrated-gradients": "8"}
"""Steps that are passes there and back; a few will do."""


def use(page: AppTest, key: str, parameter: parameters.Parameter) -> None:
    """Change one control to something else than it shows."""
    match parameter:
        case parameters.LayerChoice():
            page.selectbox(key=key).set_value("stage2.first.conv")
        case AttendingLayer():  # there are none in ShapesNet
            assert not page.selectbox(key=key).options
        case parameters.ClassChoice():
            page.selectbox(key=key).set_value("star")
        case parameters.OneOf():
            page.selectbox(key=key).set_value(parameter.choices[-1])
        case parameters.PixelCount():  # a single pixel would take a pass for every pixel
            page.number_input(key=key).set_value(40)
        case parameters.WholeNumber() | parameters.RealNumber():
            other = parameter.low if parameter.default != parameter.low else parameter.low + 1
            page.number_input(key=key).set_value(min(other, parameter.high))
        case parameters.Switch():
            page.toggle(key=key).set_value(not parameter.default)
        case parameters.Channels():
            page.text_input(key=key).set_value("0, 2-3")
        case parameters.MoreImages():
            page.file_uploader(key=key).upload("another.png", encoded(picture(5)), "image/png")
        case _:
            raise AssertionError(f"no way to use {parameter}")


def assert_answered(page: AppTest, lens: Lens, what: str) -> None:
    """It shows what it found and how long that took, or says what the choices lack."""
    assert not page.exception, what
    assert not page.error, (what, texts(page.error))
    assert page.header[0].value == lens.question
    assert "took" in texts(page.caption) or texts(page.info), what


@pytest.mark.parametrize("lens", running.list_lenses(), ids=lambda lens: lens.slug)
def test_every_control_of_every_lens_works(lens: Lens) -> None:
    steps = {f"{lens.slug}-steps": FEW[lens.slug]} if lens.slug in FEW else {}
    page = opened(model="ShapesNet", lens=lens.slug, **steps)
    assert lens.sentence in texts(page.markdown) + texts(page.caption)
    assert_answered(page, lens, "as it is opened")
    at_side = layers_at_side(lens)
    chosen = {
        each.name: each.choices[0] for each in lens.parameters if isinstance(each, parameters.OneOf)
    }
    for parameter in lens.parameters:
        if isinstance(parameter, regions.RegionChoice):  # is drawn on a picture, in a browser
            continue
        if parameter.matters_for is not None and not parameter.matters(chosen):
            name, choices = parameter.matters_for  # it is not asked for until then
            page.selectbox(key=f"{lens.slug}-{name}").set_value(choices[0]).run()
            chosen[name] = choices[0]
        if parameter in at_side:  # in a row that only a browser draws: by the link
            page.query_params["layer"] = "stage2.first.conv"
        else:
            is_target = parameter.name == TARGET
            key = TARGET if is_target else f"{lens.slug}-{parameter.name}"
            use(page, key, parameter)
        page.run()
        assert_answered(page, lens, parameter.name)
        chosen[parameter.name] = "something"
        if isinstance(parameter, parameters.OneOf):
            chosen[parameter.name] = parameter.choices[-1]

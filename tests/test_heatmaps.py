"""Heat maps as functions: the numbers of the lenses and of captum, and their settings."""

from typing import Any

import captum.attr
import numpy as np
import pytest

import hookviz
from hookviz.errors import SettingError
from hookviz.hooking.modules import named_modules
from hookviz.images.samples import samples

STAR = next(each.path for each in samples() if each.name == "star")
LAYER = "stage2.relu_out"


@pytest.fixture(scope="module")
def shapes() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


def test_grad_cam_is_captums(shapes: hookviz.Model) -> None:
    given = hookviz.prepare_input(shapes, STAR)
    layer = dict(named_modules(shapes.network))[LAYER]
    theirs = captum.attr.LayerGradCam(shapes.network, layer)
    expected = theirs.attribute(given.tensor.clone(), target=3)[0, 0].detach().numpy()
    cam = hookviz.grad_cam(shapes.network, given.tensor, layer=layer, target=3)
    assert cam.chosen["layer"] == LAYER
    np.testing.assert_allclose(cam.signed, expected, rtol=1e-3, atol=1e-6)
    assert np.array_equal(cam.values, np.maximum(cam.signed, 0))


def test_pixels_are_captums(shapes: hookviz.Model) -> None:
    given = hookviz.prepare_input(shapes, STAR)
    image = given.tensor.clone().requires_grad_()
    theirs = captum.attr.Saliency(shapes.network).attribute(image, target=3, abs=False)
    found = hookviz.saliency(shapes, given, target="star")
    assert found.attribution is not None
    np.testing.assert_allclose(found.attribution, theirs[0], rtol=1e-3, atol=1e-6)
    assert np.array_equal(found.values, np.abs(found.attribution).max(0))

    whole = captum.attr.IntegratedGradients(shapes.network)
    expected = whole.attribute(image, target=3, n_steps=20)[0].detach()
    within = hookviz.integrated_gradients(shapes, given, target="star", steps=20)
    assert within.attribution is not None
    np.testing.assert_allclose(within.attribution, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("found", "lens", "settings"),
    [
        (hookviz.grad_cam, "grad-cam", {"method": "LayerCAM", "layer": LAYER}),
        (hookviz.saliency, "saliency", {"method": "input × gradient"}),
        (hookviz.integrated_gradients, "integrated-gradients", {"steps": 3, "baseline": "grey"}),
        (hookviz.occlusion, "occlusion", {"layer": LAYER, "channel": 5, "window": 32}),
    ],
)
def test_the_lens_shows_the_same(
    found: object, lens: str, settings: dict[str, Any], shapes: hookviz.Model
) -> None:
    assert callable(found)
    one = found(shapes, STAR, **settings)
    other = hookviz.run_lens(lens, shapes, STAR, **settings)
    assert np.array_equal(one.values, other.values["map"])
    assert one.chosen.items() <= other.chosen.items()
    assert settings.items() <= one.chosen.items()


def test_a_cell_of_a_layer_can_be_asked_about_and_what_moves_it(shapes: hookviz.Model) -> None:
    asked = hookviz.occlusion(shapes, STAR, layer=LAYER, channel=5, cell=(2, 3), window=32)
    other = hookviz.run_lens(
        "occlusion", shapes, STAR, layer=LAYER, channel=5, row=2, column=3, window=32
    )
    assert np.array_equal(asked.values, other.values["map"])
    assert (asked.chosen["row"], asked.chosen["column"]) == (2, 3)
    assert asked.title == f"Occlusion of row 2, column 3 of channel 5 of {LAYER}"
    image = next(each.path for each in samples() if each.name != "star")
    field = hookviz.effective_receptive_field(shapes, STAR, layer=LAYER, images=[image])
    lens = hookviz.run_lens(
        "effective-receptive-field", shapes, STAR, layer=LAYER, images=(image,), count=2
    )
    assert np.array_equal(field.values, lens.values["map"])
    one = hookviz.effective_receptive_field(shapes, STAR, layer=LAYER, channel=3, cell=(2, 5))
    assert one.title == f"Effective receptive field of row 2, column 5 of channel 3 of {LAYER}"
    assert (one.chosen["row"], one.chosen["column"]) == (2, 5)
    assert field.overlay().size == (640, 640)


def test_mistakes_are_told_with_what_works(shapes: hookviz.Model) -> None:
    with pytest.raises(SettingError, match=r"no method called 'gradcam'.*Did you mean 'grad-cam'"):
        hookviz.grad_cam(shapes, STAR, method="gradcam")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match=r"no option called 'beside'.*like, progress, region"):
        hookviz.grad_cam(shapes, STAR, beside="another class")  # type: ignore[call-arg]
    with pytest.raises(SettingError, match=r"cell=\(2, 3\) is of a layer"):
        hookviz.occlusion(shapes, STAR, cell=(2, 3))
    for cell in (3, (1, 2, 3), (-1, 2), "ab", (0.5, 1)):
        with pytest.raises(SettingError, match="is no row and column"):
            hookviz.occlusion(shapes, STAR, layer=LAYER, cell=cell)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="samples"):
        hookviz.saliency(shapes, STAR, samples="many")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="opacity=2"):
        hookviz.grad_cam(shapes, STAR).overlay(opacity=2)

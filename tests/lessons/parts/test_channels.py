"""The channel that is found is the one that scipy and NumPy find."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.parts.channels import HUNTED, PART, kernel_in_colour
from tests.lessons.parts.scenes import cat, star, with_defaults


@pytest.mark.parametrize(("scene", "seek", "axis"), [(star, "vertical", 1), (cat, "horizontal", 0)])
def test_the_closest_channel(scene: Callable[[], LessonScene], seek: str, axis: int) -> None:
    from scipy.ndimage import correlate  # noqa: PLC0415

    here = scene()
    facts = PART.facts(here, with_defaults(PART, seek=seek, channel="closest"))
    name = here.trace.convs[0].name
    maps = hookviz.capture(here.model, here.model_input, name)[name].values.numpy()
    assert here.model_input.picture is not None
    grey = here.model_input.picture.astype(np.float64) / 255 @ (0.299, 0.587, 0.114)
    sobel = np.outer([1, 2, 1], [-1, 0, 1])
    wanted = correlate(grey, sobel if axis == 1 else sobel.T, mode="nearest")
    small = Image.fromarray(wanted.astype(np.float32)).resize(
        maps.shape[:0:-1], Image.Resampling.BOX
    )
    flat = np.asarray(small).ravel()
    alike = [abs(np.corrcoef(each.ravel(), flat)[0, 1]) for each in maps]
    assert facts["best"] == facts["channel"] == int(np.argmax(alike))
    assert facts["best_match"] == pytest.approx(max(alike), abs=1e-4)
    assert facts["middle_match"] == pytest.approx(np.median(alike), abs=1e-4)
    assert facts["channels"] == len(maps)


def test_the_lesson_says_which_layer_and_where_it_is_in_the_explorer() -> None:
    options = with_defaults(PART, layer="last", channel="3")
    facts = PART.facts(star(), options)
    layer = star().trace.convs[-1]
    assert facts["layer"] == layer.name
    assert (facts["rows"], facts["columns"]) == layer.output_shape[1:]
    assert "best" not in facts
    assert PART.link(star(), options) == {"layer": layer.name}


def test_a_kernel_in_its_colours_is_grey_at_zero() -> None:
    scene = star()
    first = layer_of(scene, "first")
    picture = kernel_in_colour(scene, first, 4)
    assert picture is not None
    conv: Any = scene.model.network.get_submodule(first.name)
    weights = conv.weight[4].detach().numpy()
    assert picture.shape == (*first.kernel_size, 3)
    largest = np.unravel_index(np.abs(weights).argmax(), weights.shape)
    assert picture[largest[1], largest[2], largest[0]] == (255 if weights[largest] > 0 else 0)
    near_zero = np.abs(weights) < np.abs(weights).max() / 300
    assert (abs(picture.transpose(2, 0, 1)[near_zero].astype(int) - 127) <= 1).all()
    assert kernel_in_colour(scene, layer_of(scene, "second"), 0) is None


def test_a_hunts_answer_is_hidden_until_it_is_found_or_given_up() -> None:
    options = with_defaults(PART, seek="vertical", hunt="yes")
    best = PART.facts(star(), with_defaults(PART, seek="vertical"))["best"]
    other = (int(best) + 1) % 32
    for tried, stars in (("", 0), (str(other), 0)):
        facts = PART.facts(star(), {**options, HUNTED: tried})
        assert facts["best"] == facts["channel"] == "…"
        assert f"channel {best}" not in str(facts["answer"])
        assert facts["stars"] == stars
    found = PART.facts(star(), {**options, HUNTED: f"{other}.{best}"})
    assert (found["best"], found["tries"], found["stars"]) == (best, 2, 3)
    assert f"found it: channel {best}" in str(found["answer"])
    given_up = PART.facts(star(), {**options, HUNTED: f"{other}!"})
    assert (given_up["best"], given_up["stars"]) == (best, 0)
    assert f"It is channel {best}" in str(given_up["answer"])

import numpy as np
import pytest
from scipy.ndimage import correlate

import hookviz
from hookviz.images.samples import samples
from hookviz.lessons.kernels import PRESETS
from hookviz.lessons.lesson import Live
from hookviz.lessons.pictures import grey_of
from hookviz.ui.lessons.catalog import lessons
from hookviz.ui.lessons.parts.four_maps import PART, kernel_map, lettered, tells_apart
from tests.lessons.conftest import scene_of
from tests.ui.lessons.parts.scenes import cat, with_defaults


def test_maps_belong_to_the_kernels_that_the_letters_say() -> None:
    options = with_defaults(PART, kernels="blur, vertical,horizontal")
    facts = PART.facts(cat(), options)
    assert lettered(options) == {"A": "blur", "B": "vertical", "C": "horizontal"}
    assert (facts["maps"], facts["letter_vertical"]) == (3, "B")
    grey = grey_of(cat(), 128)
    for name in lettered(options).values():
        right = correlate(grey, np.array(PRESETS[name]), mode="nearest")
        np.testing.assert_allclose(kernel_map(cat(), PRESETS[name]), right, atol=1e-5)
    edge = np.zeros((12, 12), np.float32)
    edge[:, 6:] = 1  # which one kernel alone has no answer to, as the lesson says
    silent = [name for name, kernel in PRESETS.items() if not correlate(edge, kernel).any()]
    assert silent == ["horizontal"]


def test_all_four_maps_of_the_question_show_edges() -> None:
    """None can be told at a glance: each has both signs, on little of the picture."""
    lesson = next(each for each in lessons() if each.slug == "channels")
    scene = scene_of(hookviz.load_model("shapesnet"), lesson.defaults["sample"])
    (live,) = (each for each in lesson.steps[0].blocks if isinstance(each, Live))
    for name in lettered(live.options).values():
        values = kernel_map(scene, PRESETS[name])
        strong = np.abs(values).max() / 4
        assert 0.005 < (values > strong).mean() < 0.25
        assert 0.005 < (values < -strong).mean() < 0.25


@pytest.mark.parametrize("sample", [each.name for each in samples()])
def test_with_every_sample_the_maps_of_upright_and_other_edges_differ(sample: str) -> None:
    """Of stripes, checks and a rocket no map could be told from another: they get the ring's."""
    scene = scene_of(hookviz.load_model("shapesnet"), sample)
    maps = [np.abs(kernel_map(scene, PRESETS[name])) for name in ("vertical", "horizontal")]
    assert np.corrcoef(maps[0].ravel(), maps[1].ravel())[0, 1] < 0.7
    assert tells_apart(grey_of(scene, 128)) == (
        sample not in ("rising-stripes", "checks", "rocket")
    )


def test_other_kernels_are_refused() -> None:
    option = next(each for each in PART.options if each.name == "kernels")
    for value in ("vertical, vertical", "vertical, horizotal", "", "a,b,c,d,e,f,g"):
        assert option.check(value)
    assert not option.check(option.default or "")

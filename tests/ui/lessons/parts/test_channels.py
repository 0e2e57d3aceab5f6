"""The channel that is found is the one that scipy and NumPy find."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import LessonScene
from hookviz.ui.lessons.parts.channels import (
    HUNTED,
    PART,
    Hunt,
    kernel_in_colour,
    read_hunt,
    written_hunt,
)
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


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


LIKENESS = (0.2, 0.9, 0.5, 0.7, 0.1, 0.3, 0.4, 0.6)


def after(*tries: int) -> Hunt:
    hunt = Hunt(LIKENESS)
    for each in tries:
        hunt = hunt.trying(each)
    return hunt


def test_nothing_is_told_before_it_is_found() -> None:
    hunt = after(3, 3, 2, 3)  # a tile counts once
    assert hunt.tries == (3, 2)
    assert not hunt.is_over
    assert (hunt.closest_so_far, hunt.closer_than(3), hunt.stars) == (3, 1, 0)
    assert Hunt(LIKENESS).closest_so_far is None


@pytest.mark.parametrize(
    ("tries", "stars"), [((1,), 3), ((0, 2, 1), 3), ((0, 2, 3, 1), 2), ((0, 2, 3, 4, 5, 6, 1), 1)]
)
def test_fewer_tries_are_more_stars(tries: tuple[int, ...], stars: int) -> None:
    hunt = after(*tries)
    assert hunt.is_found
    assert hunt.stars == stars
    assert hunt.trying(7) == hunt  # it is over
    assert Hunt((0.5, 0.5, 0.1)).trying(1).is_found  # one that is as alike


def test_an_answer_that_was_asked_for_has_no_star() -> None:
    given_up = after(0).giving_up()
    assert given_up.is_over
    assert (given_up.best, given_up.stars, given_up.is_found) == (1, 0, False)
    assert given_up.trying(1) == given_up
    assert after(1).giving_up().stars == 3  # there is nothing left to ask for


@pytest.mark.parametrize("hunt", [after(), after(3, 2), after(3, 1), after(3).giving_up()])
def test_it_is_read_as_it_was_written(hunt: Hunt) -> None:
    assert read_hunt(written_hunt(hunt), LIKENESS) == hunt


@pytest.mark.parametrize("text", ["8", "1.99", "a", "1..2", "-1", "!!", "1" * 4000, "1.1.1.x"])
def test_any_other_text_is_a_fresh_hunt(text: str) -> None:
    assert read_hunt(text, LIKENESS) == Hunt(LIKENESS)

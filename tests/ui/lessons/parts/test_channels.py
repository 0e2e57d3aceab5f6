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
    for tried in ("", str(other)):
        facts = PART.facts(star(), {**options, HUNTED: tried})
        assert facts["best"] == facts["channel"] == "…"
        assert f"channel {best}" not in str(facts["answer"])
        assert facts["stars"] == 0
    for tried, tries, stars, says in (
        (f"{other}.{best}", 2, 3, f"found it: channel {best}"),
        (f"{other}!", 1, 0, f"It is channel {best}"),
    ):
        facts = PART.facts(star(), {**options, HUNTED: tried})
        assert (facts["best"], facts["tries"], facts["stars"]) == (best, tries, stars)
        assert says in str(facts["answer"])


LIKENESS = (0.2, 0.9, 0.5, 0.7, 0.1, 0.3, 0.4, 0.6)


def trying(*tries: int) -> Hunt:
    hunt = Hunt(LIKENESS)
    for each in tries:
        hunt = hunt.trying(each)
    return hunt


def test_nothing_is_told_before_it_is_found() -> None:
    hunt = trying(3, 3, 2, 3)  # a tile counts once
    assert hunt.tries == (3, 2)
    assert not hunt.is_over
    assert (hunt.closest_so_far, hunt.closer_than(3), hunt.stars) == (3, 1, 0)
    assert Hunt(LIKENESS).closest_so_far is None
    given_up = trying(0).giving_up()
    assert given_up.is_over
    assert (given_up.best, given_up.stars, given_up.is_found) == (1, 0, False)
    assert given_up.trying(1) == given_up
    assert trying(1).giving_up().stars == 3  # there is nothing left to ask for


@pytest.mark.parametrize(
    ("tries", "stars"), [((1,), 3), ((0, 2, 1), 3), ((0, 2, 3, 1), 2), ((0, 2, 3, 4, 5, 6, 1), 1)]
)
def test_fewer_tries_are_more_stars(tries: tuple[int, ...], stars: int) -> None:
    hunt = trying(*tries)
    assert hunt.is_found
    assert hunt.stars == stars
    assert hunt.trying(7) == hunt  # it is over
    assert Hunt((0.5, 0.5, 0.1)).trying(1).is_found  # one that is as alike


def test_a_link_has_a_hunt_as_it_was_and_any_other_text_is_a_fresh_one() -> None:
    for hunt in (trying(), trying(3, 2), trying(3, 1), trying(3).giving_up()):
        assert read_hunt(written_hunt(hunt), LIKENESS) == hunt
    for text in ("8", "1.99", "a", "1..2", "-1", "!!", "1" * 4000, "1.1.1.x"):
        assert read_hunt(text, LIKENESS) == Hunt(LIKENESS)

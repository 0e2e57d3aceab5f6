"""Whatever a teacher chooses of the view stands on the pupils' screens: by each control of it.

The fields are those that the view declares, so one that is new has its move here, or says that a
class does not follow it.
"""

import re
import time
from collections.abc import Callable, Mapping
from functools import partial

import pytest
from playwright.sync_api import Browser, Page, expect

from hookviz.classroom.link_parameters import OF_ONE
from hookviz.explorer.view import choices
from hookviz.images.samples import samples
from scripts.browsing import settled_box, tile_centre, wait_for_grid
from tests.e2e.screen import (
    at_rest,
    choose,
    compare,
    link_of,
    new_context,
    open_model_settings,
    open_view,
)
from tests.e2e.test_classroom import begin

OWN = {"image", "upload", "held"}
"""Fields of what only one person has: their photograph, and the scale of their frozen stream."""


def _press(page: Page, role: str, name: str) -> None:
    page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]


def _go(page: Page, **words: str) -> None:
    """Follow a link within the page: for what the page of this network has no control of."""
    page.evaluate(
        """words => {
          const link = window.hookvizLink();
          for (const [word, text] of Object.entries(words)) link.set(word, text);
          window.hookvizGo(link.toString(), "push");
        }""",
        words,
    )


def _patches(page: Page) -> None:
    open_view(page)
    page.get_by_text("What excites each").click()
    open_view(page)  # the same button closes it


def _weights(page: Page) -> None:
    open_model_settings(page)  # they stay open for the choices after it
    _press(page, "radio", "random")


def _crop(page: Page) -> None:
    whole = page.get_by_text("Whole image")
    settled_box(page, whole)  # what opens moves its parts away from under a quick pointer
    whole.click()


def _why(page: Page) -> None:
    classes = page.get_by_role("group", name="Why this class")
    classes.get_by_role("button", name=re.compile("^ring")).click()


def _tile(page: Page) -> None:
    at_rest(page)  # a tile of the step before is none that can be picked
    page.mouse.click(*tile_centre(page, 3))


def _cell(page: Page) -> None:
    page.get_by_role("application", name="The map of channel").click(position={"x": 9, "y": 9})


def _see_a(page: Page) -> None:
    _press(page, "button", "All channels")
    of_both = page.get_by_role("radiogroup", name="What is shown of the two")
    of_both.get_by_text("A", exact=True).click()


MOVES: Mapping[str, Callable[[Page], object]] = {
    "layer": partial(_press, role="button", name="Next layer"),
    "sort": partial(choose, label="Sort by", option="mean"),
    "top": partial(choose, label="Channels", option="16"),
    "scale": partial(choose, label="Scale", option="channel"),
    "colours": partial(choose, label="Colours", option="cividis"),
    "patches": _patches,
    "answers": partial(choose, label="Which channels", option="triangle"),
    "after": lambda page: page.locator(".steps").get_by_text("ReLU", exact=True).click(),
    "channel": _tile,
    "cell": _cell,
    "origin": partial(_press, role="radio", name="Numbers"),
    "made": partial(_go, made="2-0"),
    "frame": partial(_go, frame="1"),
    "inside": partial(_press, role="button", name="Whole network"),
    "why": _why,
    "sample": partial(_press, role="radio", name=samples()[1].title),
    "pinned": compare,
    "weights": _weights,
    "compared": _see_a,
    "whole": _crop,
    "size": partial(choose, label="Input size (trained on 128 px)", option="160 px"),
    "silenced": partial(_go, silenced="stage1.first.conv:0"),
    "family": partial(choose, label="Family", option="In the box"),
    "network": partial(choose, label="Model", option="ShapesViT (drawings)"),
    "layers": partial(_press, role="switch", name="All maps"),
    "output": partial(_go, output="0"),
}
"""How each field is chosen, in turn."""
COMPARED = ("answers", "made", "why", "compared", "silenced", "output")
"""After these the screens are compared: with what was chosen since the last one."""


def shared(page: Page) -> dict[str, str]:
    """What the link says that is not one person's own."""
    return {name: value for name, value in link_of(page).items() if name not in OF_ONE}


def says(page: Page) -> str:
    """What the explorer's tiles, labels and controls say, and the choices at the side."""
    at_rest(page)
    side = page.get_by_test_id("stSidebar").locator("[role=radio], [role=combobox]")
    chosen = side.evaluate_all("all => all.map(each => [each.value, each.ariaChecked].join())")
    explorer = page.locator(".explorer").aria_snapshot()
    said = [line for line in explorer.splitlines() if " ms · " not in line]  # how long it took
    tiles = page.locator("figure .stage").get_attribute("data-painted")
    return "\n".join([*said, str(tiles), str(chosen)])


def wait_for_same(read: Callable[[Page], object], teacher: Page, pupil: Page) -> None:
    """Wait until what is read of both pages is the same."""
    deadline = time.monotonic() + 10
    while (seen := read(pupil)) != (taught := read(teacher)) and time.monotonic() < deadline:
        pupil.wait_for_timeout(20)
    assert seen == taught


@pytest.mark.by_day
def test_every_control_of_the_teacher_moves_the_pupils_screen(
    browser: Browser, server: str
) -> None:
    assert sorted(MOVES) == sorted({*choices()} - OWN)
    windows = [new_context(browser, viewport={"width": 1280, "height": 720}) for _ in range(2)]
    teacher, pupil = (window.new_page() for window in windows)
    pupil.goto(f"{server}/?follow={begin(teacher, server)}")
    expect(teacher.get_by_text("1 screen follows")).to_be_visible()
    for name, move in MOVES.items():
        word = choices()[name].word
        before = shared(teacher).get(word)
        move(teacher)
        teacher.wait_for_function(
            "([word, before]) => window.hookvizLink().get(word) !== before",
            arg=[word, before],
        )
        wait_for_same(shared, teacher, pupil)
        if name in COMPARED:
            wait_for_same(says, teacher, pupil)
    chosen = shared(teacher)
    for page in (pupil, teacher):
        page.reload()
        wait_for_grid(page)
        wait_for_same(says, teacher, pupil)
        assert shared(pupil) == shared(teacher) == chosen

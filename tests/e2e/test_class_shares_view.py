"""Whatever a teacher chooses of the view stands on the pupils' screens: by each control of it.

The fields are those that the view declares, so one that is new has its move here, or says that a
class does not follow it.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from hookviz.classroom.shared_state import OF_ONE
from hookviz.explorer.view import choices
from hookviz.images.samples import samples
from scripts.browsing import settled_box, tile_centre, wait_for_grid
from tests.e2e.screen import at_rest, choose, new_context
from tests.e2e.test_classroom import begin

OWN = {"image", "upload", "held"}
"""Fields of what only one person has: their photograph, and the scale of their frozen stream."""


def _press(page: Page, role: str, name: str) -> None:
    page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]


def _go(page: Page, **words: str) -> None:
    """Follow a link within the page: for what the page of this network has no control of."""
    page.evaluate(
        """words => {
          const link = new URLSearchParams(location.search);
          for (const [word, text] of Object.entries(words)) link.set(word, text);
          window.hookvizGo(link.toString(), "push");
        }""",
        words,
    )


def _crop(page: Page) -> None:
    page.get_by_text("Input size and crop").click()
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
    _press(page, "radio", "All channels")
    of_both = page.get_by_role("radiogroup", name="What is shown of the two")
    of_both.get_by_text("A", exact=True).click()


MOVES: Sequence[Mapping[str, Callable[[Page], object]]] = (
    {
        "layer": partial(_press, role="button", name="Next layer"),
        "sort": partial(choose, label="Sort by", option="mean"),
        "top": partial(choose, label="Channels", option="16"),
        "scale": partial(choose, label="Scale", option="channel"),
        "colours": partial(choose, label="Colours", option="cividis"),
        "patches": lambda page: page.get_by_text("What excites each").click(),
        "answers": partial(choose, label="Which channels", option="triangle"),
    },
    {
        "after": lambda page: page.locator(".steps").get_by_text("ReLU", exact=True).click(),
        "channel": _tile,
        "cell": _cell,
        "origin": partial(_press, role="radio", name="Numbers"),
        "made": partial(_go, made="2-0"),
    },
    {
        "frame": partial(_go, frame="1"),
        "inside": partial(_press, role="radio", name="Whole network"),
        "why": _why,
    },
    {
        "sample": partial(_press, role="radio", name=samples()[1].title),
        "pinned": partial(_press, role="button", name="Compare"),
        "weights": partial(_press, role="radio", name="random"),
        "compared": _see_a,
    },
    {
        "whole": _crop,
        "size": partial(choose, label="Input size (trained on 128 px)", option="160 px"),
        "silenced": partial(_go, silenced="stage1.first.conv:0"),
    },
    {
        "family": partial(choose, label="Model", option="In the box"),
        "network": partial(choose, label="Model of this family", option="ShapesViT (drawings)"),
        "layers": partial(_press, role="radio", name="All maps"),
        "output": partial(_go, output="0"),
    },
)
"""How each field is chosen, in turn: of some that are seen together the screens are compared."""


def shared(page: Page) -> dict[str, str]:
    """What the link says that is not one person's own."""
    link = dict(parse_qsl(urlsplit(page.url).query))
    return {name: value for name, value in link.items() if name not in OF_ONE}


def says(page: Page) -> str:
    """What the explorer's tiles, labels and controls say, and the choices at the side."""
    at_rest(page)
    side = page.get_by_test_id("stSidebar").locator("[role=radio], [role=combobox]")
    chosen = side.evaluate_all("all => all.map(each => [each.value, each.ariaChecked].join())")
    explorer = page.locator(".explorer").aria_snapshot()
    said = [line for line in explorer.splitlines() if " ms · " not in line]  # how long it took
    tiles = page.locator("figure .stage").get_attribute("data-painted")
    return "\n".join([*said, str(tiles), str(chosen)])


def wait_for_same(
    read: Callable[[Page], object], teacher: Page, pupil: Page, wanted: object = None
) -> None:
    """Wait until what is read of both pages is the same, or on both what is `wanted`."""
    deadline = time.monotonic() + 10
    while True:
        seen, taught = read(pupil), read(teacher)
        if seen == taught == (wanted or taught) or time.monotonic() > deadline:
            break
        pupil.wait_for_timeout(20)
    assert seen == taught == (wanted or taught)


def followed(browser: Browser, server: str) -> tuple[Page, Page, str]:
    """A teacher's window, that of a pupil who follows, and the code of their class."""
    windows = [new_context(browser, viewport={"width": 1280, "height": 720}) for _ in range(2)]
    teacher, pupil = (window.new_page() for window in windows)
    code = begin(teacher, server)
    pupil.goto(f"{server}/?follow={code}")
    expect(teacher.get_by_text("1 screen follows")).to_be_visible()
    return teacher, pupil, code


@pytest.mark.by_day
def test_every_control_of_the_teacher_moves_the_pupils_screen(
    browser: Browser, server: str
) -> None:
    moved = [name for group in MOVES for name in group]
    assert sorted(moved) == sorted({*choices()} - OWN)
    teacher, pupil, _ = followed(browser, server)
    for group in MOVES:
        for name, move in group.items():
            word = choices()[name].word
            before = shared(teacher).get(word)
            move(teacher)
            teacher.wait_for_function(
                "([word, before]) => new URLSearchParams(location.search).get(word) !== before",
                arg=[word, before],
            )
            wait_for_same(shared, teacher, pupil)
        wait_for_same(says, teacher, pupil)
    chosen = shared(teacher)
    for page in (pupil, teacher):
        page.reload()
        wait_for_grid(page)
        wait_for_same(says, teacher, pupil)
        assert shared(pupil) == shared(teacher) == chosen


LIVE = "[class*=st-key-hv-live]"


def _depth(page: Page) -> None:
    page.locator(LIVE).locator(".depth-slider").press("End")


def _option(page: Page) -> None:
    page.locator(LIVE).get_by_role("combobox").first.click()
    page.get_by_role("option").nth(2).click()


def _switch(page: Page) -> None:
    page.locator(LIVE).get_by_role("radio", name=re.compile("switched off$")).click()


def _tile_in_lesson(page: Page) -> None:
    page.locator(f"{LIVE} canvas:visible").first.click(position={"x": 90, "y": 60})


def _click(page: Page, what: str) -> None:
    page.locator(f"{LIVE} {what}").first.click()


def _key(page: Page, what: str, key: str) -> None:
    page.locator(f"{LIVE} {what}").first.press(key)


IN_LESSONS: Mapping[tuple[str, int], Callable[[Page], object]] = {
    ("image", 1): partial(_click, what=".riddle-on"),
    ("convolution", 3): partial(_click, what="button.more"),  # of a kernel's weight
    ("channels", 3): _tile_in_lesson,
    ("relu-and-pooling", 1): _switch,
    ("depth", 1): _depth,
    ("from-maps-to-a-class", 4): partial(_key, what=".score-row input", key="Shift+ArrowLeft"),
    ("what-if", 1): partial(
        _key, what=":is([role=slider], [data-testid=stSlider] input)", key="End"
    ),
    ("a-hooks-life", 1): _option,  # a constant of a script
}
"""A control of each kind, in a step of a lesson that waits for no answer before it."""


def lesson_says(page: Page) -> str:
    """What a lesson's live parts say, but for what stands under the pointer."""
    at_rest(page)
    parts = "\n".join(part.aria_snapshot() for part in page.locator(LIVE).all())
    return "\n".join(line for line in parts.splitlines() if not re.match(r"\s*- status", line))


def test_what_a_teacher_moves_in_a_lesson_is_moved_for_pupils(
    browser: Browser, server: str
) -> None:
    teacher, pupil, code = followed(browser, server)
    for (lesson, step), move in IN_LESSONS.items():
        link = f"model=ShapesNet&sample=star&class={code}&lesson={lesson}&step={step}"
        teacher.evaluate("query => window.hookvizGo(query, 'push')", link)
        expect(teacher.locator(f'[data-step="{lesson} {step}"]')).to_be_attached()
        first = lesson_says(teacher)
        before = teacher.evaluate("location.search")
        move(teacher)
        teacher.wait_for_function("before => location.search !== before", arg=before)
        wait_for_same(shared, teacher, pupil)
        wait_for_same(lesson_says, teacher, pupil)
        chosen, said = shared(teacher), lesson_says(teacher)
        assert said != first, (lesson, step)
    # A pupil's page has nothing but the link to go by, so what it shows a page loaded anew shows.
    for page in (pupil, teacher):
        page.reload()
        wait_for_same(lesson_says, teacher, pupil, said)
        wait_for_same(shared, teacher, pupil, chosen)

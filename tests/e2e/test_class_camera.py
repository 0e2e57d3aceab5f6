"""What a class sees of its teacher's live camera: nothing, until the teacher shows it."""

from collections.abc import Callable

from playwright.sync_api import Page, WebSocket, expect

from hookviz.classroom.school_class import MAX_FRAME_BYTES
from tests.e2e.test_accessibility import serious
from tests.e2e.test_classroom import PHONE, WIDE, begin, screen
from tests.e2e.test_live import expect_live
from tests.e2e.test_mirror import expect_mirror

__all__ = ["screen"]

NOTICE = "The teacher is looking at a live camera; it is not shared."
PHOTO, TILES = ".camera .photo", ".camera .tiles"

_SIZES = """() => [...document.querySelectorAll('*')]
  .map((each) => each.shadowRoot?.querySelector('.camera .seen')).filter(Boolean)
  .flatMap((seen) => [...seen.querySelectorAll('img:not([hidden])')])
  .map((image) => [image.naturalWidth, image.naturalHeight])"""


def pictures(page: Page, count: int) -> list[list[int]]:
    """Wait until so many pictures of the camera have been loaded; their sizes."""
    page.wait_for_function(f"() => ({_SIZES})().filter(([wide]) => wide > 0).length === {count}")
    sizes: list[list[int]] = page.evaluate(_SIZES)
    return sizes


def number_of(page: Page) -> int:
    return int(page.locator(".camera").get_attribute("data-count") or 0)


def test_pupils_read_that_there_is_a_camera_and_see_it_when_the_teacher_shows_it(
    screen: Callable[..., Page], server: str
) -> None:
    teacher, pupil, phone = screen(WIDE), screen(WIDE, "dark"), screen(PHONE)
    code = begin(teacher, server)
    heard: list[int] = []

    def hear(socket: WebSocket) -> None:
        if "/hookviz/class" in socket.url:
            socket.on(
                "framereceived",
                lambda got: heard.append(len(got)) if isinstance(got, bytes) else None,
            )

    pupil.on("websocket", hear)
    for page in (pupil, phone):
        page.goto(f"{server}/?follow={code}")
        expect(page.get_by_text("You follow your teacher.")).to_be_visible()
        expect(page.locator(".camera")).to_be_hidden()

    teacher.keyboard.press("Escape")  # the menu with the code
    teacher.get_by_test_id("stSidebar").get_by_text("Live", exact=True).click()
    expect_live(teacher)
    for page in (pupil, phone):
        expect(page.get_by_text(NOTICE)).to_be_visible()
        expect(page.locator(PHOTO)).to_be_hidden()
    switch = teacher.get_by_role("checkbox", name="Show my camera to the class")
    told = teacher.locator(".live .controls .shared")
    expect(switch).not_to_be_checked()
    expect(told).to_contain_text("The class reads that you look at a live camera")
    assert heard == []

    switch.check()
    expect(told).to_contain_text("Everybody in the class sees a small picture")
    for page in (pupil, phone):
        (photo, tiles) = pictures(page, 2)
        assert photo[0] > 100
        assert tiles[0] > 300
        expect(page.locator(".camera .what")).to_contain_text("layer stem.first.conv")
        expect(page.locator(PHOTO)).to_be_in_viewport()
    teacher.locator(".live .stage").focus()
    teacher.keyboard.press("ArrowRight")
    for page in (pupil, phone):  # on a phone above the sheet of the channel
        page.wait_for_url("**channel=0**")
        expect(page.locator(".camera .what")).to_contain_text("channel 0")
        expect(page.locator(PHOTO)).to_be_in_viewport()
    expect(phone.get_by_role("heading", name="Channel 0")).to_be_in_viewport()
    first = number_of(pupil)
    pupil.wait_for_function(
        "(first) => [...document.querySelectorAll('*')].some((each) =>"
        " Number(each.shadowRoot?.querySelector('.camera')?.dataset.count) > first)",
        arg=first,
    )
    assert max(heard) <= MAX_FRAME_BYTES
    assert serious(pupil) == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE[0]

    pupil.get_by_role("button", name="Let go").click()
    expect(pupil.locator(".camera")).to_be_hidden()
    pupil.get_by_role("button", name="Back to the teacher").click()
    expect(pupil.locator(PHOTO)).to_be_visible()

    teacher.locator(".live .stage").focus()
    teacher.keyboard.press("m")  # the mirror is one picture
    expect_mirror(teacher)
    pictures(pupil, 1)
    assert max(heard) <= MAX_FRAME_BYTES
    teacher.locator(".live .desk .share input").uncheck()
    for page in (pupil, phone):
        expect(page.get_by_text(NOTICE)).to_be_visible()
        expect(page.locator(PHOTO)).to_be_hidden()
    teacher.keyboard.press("Escape")
    teacher.get_by_test_id("stSidebar").get_by_text("Samples", exact=True).click()
    for page in (pupil, phone):
        expect(page.locator(".camera")).to_be_hidden()

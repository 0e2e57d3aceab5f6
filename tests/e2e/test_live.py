"""The stream of frames: Chromium's own test picture stands for a camera."""

import base64
import io
import json
import re
from itertools import combinations
from typing import Literal

import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Browser, FloatRect, Page, WebSocket, WebSocketRoute, expect

from scripts.browsing import STAGE, settled_box, settled_boxes, wait_for_grid
from tests.e2e.probing import until
from tests.e2e.screen import choose, link_of, new_context
from tests.e2e.test_accessibility import serious

LIVE = "?model=ShapesNet&image=Live"
TILES = ".live .stage"

Scheme = Literal["light", "dark"]
_AWAY = """document => {
  Object.defineProperty(document, "hidden", { get: () => document.away, configurable: true });
}"""


_HOLD = """(() => {
  const unpack = window.createImageBitmap;
  window.createImageBitmap = (from, ...more) => !(document.held && from instanceof Blob)
    ? unpack(from, ...more)
    : new Promise((done) => document.held.push(() => done(unpack(from, ...more))));
})()"""
"""Pictures of an answer wait in `document.held`, once it is there."""


_TWO_RIGHT = """() => {
  for (const key of ["ArrowRight", "ArrowRight"]) {
    const press = new KeyboardEvent("keydown", { key, bubbles: true, composed: true });
    document.body.dispatchEvent(press);
  }
}"""
"""Two keys so close that the link rests on the second one, however busy the page is."""


def frames_of(page: Page) -> int:
    """The number of the last frame that was painted."""
    return int(page.locator(TILES).get_attribute("data-frame") or 0)


def expect_live(page: Page, more: int = 2) -> None:
    """Wait until that many frames more were painted."""
    page.locator(f"{TILES}[data-painted]").wait_for()
    start = frames_of(page)
    page.wait_for_function(f"() => Number({_find('.stage')}?.dataset.frame) >= {start + more}")


def at_rest(page: Page) -> int:
    """Wait until no frame is painted any more; the number of the last one."""
    for _ in range(30):
        last = frames_of(page)
        page.wait_for_timeout(700)
        if frames_of(page) == last:
            return last
    raise AssertionError("it does not come to rest")


def _find(selector: str) -> str:
    """JavaScript for a part of the component, whose shadow root `document` does not look into."""
    roots = "[...document.querySelectorAll('*')].map((each) => each.shadowRoot).filter(Boolean)"
    return f"{roots}.map((root) => root.querySelector('.live {selector}')).find(Boolean)"


def tile(page: Page, position: int) -> tuple[float, float]:
    """The middle of a tile in the window."""
    box = settled_box(page, page.locator(".live .board"))
    lie = json.loads(page.locator(TILES).get_attribute("data-layout") or "")
    row, column = divmod(position, lie["columns"])
    return (
        box["x"] + column * (lie["wide"] + lie["gap"]) + lie["wide"] / 2,
        box["y"] + row * (lie["high"] + lie["gap"]) + lie["high"] / 2,
    )


@pytest.mark.promise
def test_frames_are_drawn_a_channel_is_followed_and_what_is_drawn_changes(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/{LIVE}")
    expect_live(page)
    expect(page.locator(".live .scores > div")).to_have_count(5)
    expect(page.locator(".live .speed")).to_contain_text(
        re.compile(r"^[1-9]\d* frames/s · \d+ ms$")
    )
    expect(page.get_by_text("The lenses take one image")).to_be_visible()
    for box in page.get_by_label("Show my camera to the class").all():
        expect(box).to_be_hidden()  # who teaches no class is offered nothing to share
    length = page.evaluate("history.length")
    page.mouse.click(*tile(page, 9))
    expect(page.get_by_role("heading", name="Channel 9")).to_be_visible()
    expect(page.locator(".live .numbers")).to_contain_text(
        re.compile(r"^min \S+ · mean \S+ · max \S+ · strongest at row \d+, column \d+$")
    )
    page.wait_for_url("**channel=9**")
    page.evaluate(_TWO_RIGHT)
    expect(page.get_by_role("heading", name="Channel 11")).to_be_visible()
    page.wait_for_url("**channel=11**")  # the one that the keys rest on
    assert page.evaluate("history.length") == length + 2
    page.go_back()
    expect(page.get_by_role("heading", name="Channel 9")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".live .picked")).to_be_hidden()
    page.wait_for_function("() => !location.hash.includes('channel')")
    expect_live(page)

    layout = page.locator(TILES).get_attribute("data-layout") or ""
    assert json.loads(layout)["count"] == 32
    page.keyboard.press("n")
    page.wait_for_url("**layer=stage1.first.conv**")
    page.get_by_role("radio", name="ReLU").first.click()
    expect_live(page)
    choose(page, "Channels", "16")
    expect(page.locator(TILES)).to_have_attribute("data-layout", re.compile(r'"count":16\b'))
    bar = page.locator(".live .scale")
    page.get_by_role("checkbox", name="Hold colours").check()
    expect_live(page, 6)  # those that were on their way are not held
    held = bar.get_attribute("data-bar")
    expect_live(page, 10)
    assert bar.get_attribute("data-bar") == held


def test_a_frozen_frame_is_the_grid_that_was_shown_and_back_goes_on(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/{LIVE}")
    expect_live(page)
    page.mouse.click(*tile(page, 5))
    page.wait_for_url("**channel=5**")
    expect_live(page)
    length = page.evaluate("history.length")
    page.locator(TILES).evaluate(_NOTE_AT_KEY)  # the page may be gone before it is read
    page.keyboard.press(" ")
    streamed = page.evaluate("window.hvPainted")
    wait_for_grid(page)
    assert page.locator(STAGE).get_attribute("data-painted") == streamed
    expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()
    expect(page.get_by_role("radio", name=re.compile(r"^Frame \d\d:\d\d:\d\d$"))).to_be_checked()
    link = link_of(page)
    assert (link["image"], link["channel"]) == ("Upload", "5")
    assert link["cell"].endswith(",64,64")
    assert page.evaluate("history.length") == length + 1
    page.go_back()
    expect_live(page)
    expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()
    page.get_by_label("Hold colours").check()
    page.wait_for_timeout(1500)  # until the camera shows something else than when it was held
    streamed = page.get_by_role("button", name="Freeze").evaluate(_FREEZE)
    wait_for_grid(page)
    assert page.locator(STAGE).get_attribute("data-painted") == streamed  # on the scale held there
    page.get_by_role("button", name="Back to live").click()
    expect_live(page)


_NOTE_AT_KEY = """(stage) => addEventListener(
  "keydown", () => { window.hvPainted = stage.dataset.painted; }, { capture: true, once: true })"""

# What is painted in the moment of the click, before the page goes on to the explorer.
_FREEZE = "(b) => (b.click(), b.getRootNode().querySelector('.live .stage').dataset.painted)"

# A second of a square that moves, recorded by the browser itself.
_RECORD = """async () => {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [320, 240];
  const pen = canvas.getContext("2d");
  const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: "video/webm" });
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const done = new Promise((resolve) => (recorder.onstop = resolve));
  recorder.start();
  for (let step = 0; step < 30; step += 1) {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, 320, 240);
    pen.fillStyle = "#c00";
    pen.fillRect(20 + 7 * step, 80, 80, 80);
    await new Promise((resolve) => setTimeout(resolve, 33));
  }
  recorder.stop();
  await done;
  const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""


def animation() -> bytes:
    """A GIF of five frames."""
    pictures = [Image.new("RGB", (120, 90), "white") for _ in range(5)]
    for number, picture in enumerate(pictures):
        ImageDraw.Draw(picture).ellipse((15 * number, 20, 15 * number + 40, 60), "blue")
    file = io.BytesIO()
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=100, loop=0)
    return file.getvalue()


def play(page: Page, name: str, kind: str, content: bytes) -> None:
    file = {"name": name, "mimeType": kind, "buffer": content}
    page.locator(".live input[type=file]").set_input_files(file)  # type: ignore[arg-type]


def test_a_video_is_played_by_the_browser_frame_by_frame(page: Page, server: str) -> None:
    sent: list[int] = []
    page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
    page.goto(f"{server}/{LIVE}")
    expect_live(page)
    film = base64.b64decode(page.evaluate(_RECORD))
    play(page, "square.webm", "video/webm", film)
    at = page.locator(".live .player .at")
    expect(at).to_have_text(re.compile(r"^\d\.\d\d of [01]\.\d\d s$"))  # its end was found
    expect_live(page)
    page.get_by_role("button", name="Pause").click()
    scrub = page.get_by_role("slider", name="Position in the video")
    scrub.fill("0.5")
    expect(at).to_have_text(re.compile(r"^0\.50 of"))
    still = at_rest(page)  # nothing is sent of what does not change
    before = page.locator(TILES).get_attribute("data-painted")
    page.wait_for_timeout(700)
    assert frames_of(page) == still
    page.get_by_role("button", name="One frame ahead").click()
    expect(page.locator(TILES)).not_to_have_attribute("data-painted", before or "")
    page.mouse.click(*tile(page, 3))  # what is drawn of it changes all the same
    page.evaluate(_TWO_RIGHT)  # two answers at once, and none after them
    expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()
    expect(page.locator(".live .numbers")).to_contain_text("max")
    page.keyboard.press(" ")
    wait_for_grid(page)
    page.get_by_role("button", name="Back to live").click()
    expect(at).to_be_visible()  # the film goes on where it was
    play(page, "circle.gif", "image/gif", animation())
    expect(at).to_have_text(re.compile(r"^frame \d of 5$"))
    page.get_by_role("button", name="Pause").click()
    scrub.fill("3")
    expect(at).to_have_text("frame 4 of 5")
    page.get_by_role("button", name="One frame back").click()
    expect(at).to_have_text("frame 3 of 5")
    play(page, "none.mp4", "video/mp4", b"these are only words")
    expect(page.get_by_role("alert")).to_contain_text("This file can't be played")
    page.locator(".live .camera").click()
    expect_live(page)
    assert max(sent) < 2_000 < len(film)  # it never left: the explorer asks in few bytes


def test_a_hidden_tab_sends_nothing_and_goes_on_when_it_is_seen(page: Page, server: str) -> None:
    page.add_init_script(f"({_AWAY})(document)")
    page.add_init_script(_HOLD)
    sockets: list[WebSocket] = []
    page.on("websocket", lambda one: sockets.append(one) if "/live" in one.url else None)
    page.goto(f"{server}/{LIVE}")
    expect_live(page)

    def all_are_closed() -> bool:
        page.wait_for_timeout(50)
        return all(one.is_closed() for one in sockets)

    page.evaluate("document.held = []")
    page.wait_for_function("() => document.held.length")
    page.evaluate("document.away = true; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".live .state")).to_have_text("Stopped while this tab is hidden.")
    until(all_are_closed)
    assert page.evaluate(f"{_find('video')}.srcObject") is None
    still = frames_of(page)
    page.evaluate("document.held.splice(0).forEach((unpack) => unpack()); document.held = null")
    page.wait_for_timeout(300)  # an answer that is unpacked only now says nothing
    expect(page.locator(".live .state")).to_have_text("Stopped while this tab is hidden.")
    assert frames_of(page) == still
    page.evaluate("document.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect_live(page)
    page.get_by_text("Samples", exact=True).click()
    wait_for_grid(page)
    until(all_are_closed)


_FAULTS = """
const { mediaDevices } = navigator;
const own = mediaDevices.getUserMedia.bind(mediaDevices, { video: true });
mediaDevices.getUserMedia = () =>
  window.fault ? Promise.reject(new DOMException("", window.fault)) : own();
Object.defineProperty(navigator, "mediaDevices", {
  get: () => (window.fault === "no https" ? undefined : mediaDevices),
});
window.fault = "NotReadableError";
"""


def test_each_fault_of_a_camera_is_said_and_tried_again(page: Page, server: str) -> None:
    page.add_init_script(_FAULTS)
    page.goto(f"{server}/{LIVE}")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The camera is in use")
    expect(page.get_by_role("button", name="Video file")).to_be_visible()
    assert serious(page) == []
    for fault, words in (
        ("NotAllowedError", "The camera was not allowed"),
        ("NotFoundError", "There is no camera"),
        ("no https", "The camera needs https"),
    ):
        page.evaluate("fault => { window.fault = fault; }", fault)
        page.get_by_role("button", name="Try again").click()
        expect(alert).to_contain_text(words)
    page.evaluate("window.fault = null")
    page.get_by_role("button", name="Try again").click()
    expect_live(page)
    expect(alert).to_be_hidden()


_ENDS = {
    4401: "The stream is not known any more",
    4429: "Too much at once",
    1011: "The server can't be reached",
}


def test_each_end_of_a_stream_is_said(page: Page, server: str) -> None:
    codes = list(_ENDS)

    def meet(socket: WebSocketRoute) -> None:
        if codes:
            socket.send(json.dumps({"over": "What the server says."}))
            socket.close(code=codes.pop(0))
        else:
            socket.connect_to_server()

    page.route_web_socket(re.compile("/hookviz/live"), meet)
    page.goto(f"{server}/{LIVE}")
    alert = page.get_by_role("alert")
    for words in _ENDS.values():
        expect(alert).to_contain_text(words)
        expect(alert).to_contain_text("What the server says.")
        page.get_by_role("button", name="Try again").click()
    expect_live(page)


@pytest.mark.parametrize(("size", "scheme"), [((1280, 720), "light"), ((390, 844), "dark")])
def test_nothing_overlaps_and_all_is_in_the_window(
    browser: Browser, server: str, size: tuple[int, int], scheme: Scheme
) -> None:
    """Of the stream, and of the mirror, whose picture has the window's height."""
    wide, high = size
    context = new_context(browser, viewport={"width": wide, "height": high}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{server}/{LIVE}&channel=5")
    expect_live(page)
    expect(page.locator(".live .numbers")).to_contain_text("max")
    parts = [".photo", ".scores", ".controls", ".picked", ".tiles"]
    settled = settled_boxes(page, *(page.locator(f".live {part}") for part in parts))
    boxes = dict(zip(parts, settled, strict=True))
    for part, box in boxes.items():
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= wide + 1, part
    for part, other in combinations(parts, 2):
        assert not overlap(boxes[part], boxes[other]), (part, other)
    assert not overlap(settled_box(page, page.locator(".st-key-hv-layer")), boxes[".photo"])
    if wide > 640:
        assert (
            max(boxes[part]["y"] + boxes[part]["height"] for part in (".picked", ".tiles")) <= high
        )
    else:
        assert boxes[".picked"]["y"] < boxes[".tiles"]["y"]
        assert boxes[".tiles"]["y"] + 60 <= high  # the first row of tiles is seen
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    assert serious(page) == []

    page.goto(f"{server}/{LIVE}&channel=5&mirror=1")
    page.locator(".live .moments li").first.wait_for()
    glass, desk = settled_boxes(page, page.locator(".live .glass"), page.locator(".live .desk"))
    assert not overlap(glass, desk)
    assert glass["height"] == high if wide > 640 else glass["width"] == wide
    assert glass["width"] * glass["height"] > 0.4 * wide * high
    for part in (".dare", ".level", ".now", ".record", ".surprise", ".layer", ".save", ".clear"):
        box = settled_box(page, page.locator(f".live {part}"))
        assert box["x"] >= 0, part
        assert box["x"] + box["width"] <= wide + 1, part
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    page.evaluate(f"{_find('.glass')}.classList.add('won')")
    moves = f"getComputedStyle({_find('.record')}).animationName"
    assert page.evaluate(moves) == "none"  # it was asked to keep still
    assert serious(page) == []


def overlap(one: FloatRect, other: FloatRect) -> bool:
    return (
        one["x"] + 1 < other["x"] + other["width"]
        and other["x"] + 1 < one["x"] + one["width"]
        and one["y"] + 1 < other["y"] + other["height"]
        and other["y"] + 1 < one["y"] + one["height"]
    )

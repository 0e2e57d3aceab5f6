"""The stream as a mirror: the camera as large as the window, and a channel that glows on it."""

import io
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw
from playwright.sync_api import Page, WebSocket, expect

import hookviz
from scripts.browsing import STAGE, settled_boxes, wait_for_grid
from tests.e2e.screen import read_number
from tests.e2e.test_live import LIVE, expect_live, play

ROOT = ".live.mirrors"
STEP = "stem.first.conv"
DARE = ".live .dare"

_ROOT = """[...document.querySelectorAll('*')]
  .map((each) => each.shadowRoot?.querySelector('.live')).find(Boolean)"""
_FOCUSED = f"""(() => {{
  const inner = {_ROOT}.getRootNode().activeElement;
  return inner ? inner.className || inner.closest('label')?.className : null;
}})()"""
_GLOW = f"""(() => {{
  const canvas = {_ROOT}.querySelector('.glow');
  const {{ width, height }} = canvas;
  return [height, width, [...canvas.getContext('2d').getImageData(0, 0, width, height).data]];
}})()"""


def expect_mirror(page: Page, more: int = 2) -> None:
    """Wait until the mirror has drawn that many answers more."""
    page.locator(f"{ROOT}[data-mirrored]").wait_for()
    start = int(page.locator(ROOT).get_attribute("data-mirrored") or 0)
    page.wait_for_function(f"() => Number({_ROOT}?.dataset.mirrored) >= {start + more}")


def still() -> bytes:
    """A GIF of one frame, of which no two parts are alike."""
    picture = Image.new("RGB", (240, 180), "white")
    pen = ImageDraw.Draw(picture)
    pen.ellipse((30, 40, 110, 120), "navy")
    pen.polygon([(150, 150), (200, 60), (225, 150)], "orange")
    file = io.BytesIO()
    picture.save(file, "GIF")
    return file.getvalue()


def sent_frames(page: Page) -> list[bytes]:
    """The files that go to the server from now on."""
    frames: list[bytes] = []

    def hear(socket: WebSocket) -> None:
        if "/hookviz/live" in socket.url:
            socket.on(
                "framesent",
                lambda sent: frames.append(sent[4:]) if isinstance(sent, bytes) else None,
            )

    page.on("websocket", hear)
    return frames


def read(page: Page, part: str) -> float:
    """The number in a part of the mirror, such as “now 3.88”."""
    return read_number(page.locator(f".live {part}").inner_text())


def test_the_glow_is_the_map_of_the_frame_and_the_level_its_own(page: Page, server: str) -> None:
    frames = sent_frames(page)
    page.goto(f"{server}/{LIVE}&channel=5")
    expect_live(page)
    play(page, "still.gif", "image/gif", still())
    expect(page.locator(".live .player .at")).to_have_text("frame 1 of 1")
    page.get_by_role("button", name="Mirror").click()
    page.wait_for_url("**mirror=1**")
    expect(page.locator(DARE)).to_have_text("Hold up something that lights channel 5")
    expect_mirror(page, 0)
    page.get_by_label("Exact cells").check()
    page.locator(".live .now").filter(has_text=re.compile("now .*[1-9]")).wait_for()

    capture = hookviz.capture(hookviz.load_model("shapesnet"), frames[-1], STEP)
    values = capture[STEP].values[5].numpy()
    assert read(page, ".now") == pytest.approx(values.max(), rel=5e-3)  # three digits
    rows, columns, pixels = page.evaluate(_GLOW)
    assert (rows, columns) == values.shape
    light = np.array(pixels).reshape(rows, columns, 4)[..., :3].sum(2)
    assert (light[values <= 0] == 0).all()
    assert np.unravel_index(light.argmax(), light.shape) == np.unravel_index(
        values.argmax(), values.shape
    )
    above = values > 0.2 * values.max()
    assert np.corrcoef(light[above], values[above])[0, 1] > 0.9
    expect(page.get_by_label("Mirrored")).not_to_be_checked()  # a film's letters stay readable

    page.get_by_label("Exact cells").uncheck()
    assert page.evaluate(_GLOW)[1] > columns
    page.locator(".live .measure select").select_option("mean")
    mean = f"{values.mean():.3g}"
    expect(page.locator(".live .now")).to_have_text(re.compile(mean.replace("-", "−")))


def test_the_keyboard_alone_enters_plays_and_leaves(page: Page, server: str) -> None:
    page.goto(f"{server}/{LIVE}")
    expect_live(page)
    page.keyboard.press("m")
    page.wait_for_url("**mirror=1**")
    page.wait_for_url("**channel=**")  # one that answers now
    expect_mirror(page)
    before = int(page.locator(".live .number input").input_value())
    page.keyboard.press("ArrowRight")
    other = (before + 1) % 32
    expect(page.locator(DARE)).to_have_text(f"Hold up something that lights channel {other}")
    page.wait_for_url(f"**channel={other}**")
    page.keyboard.press("n")
    page.wait_for_url("**layer=stage1.first.conv**")
    expect(page.locator(".live .layer select")).to_have_value("stage1.first.conv")
    page.locator(".live .layer select").select_option("stage2.first.conv")
    page.wait_for_url("**layer=stage2.first.conv**")
    expect_mirror(page)

    seen = set()
    page.locator(".live .glass").focus()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate(_FOCUSED))
    assert {"leave", "number", "surprise", "layer", "flip", "exact", "strength"} <= seen
    hidden = page.get_by_role("button", name="Classroom", exact=True)
    expect(hidden).to_be_hidden()  # neither seen nor reached behind it

    field = page.locator(".live .number input")
    field.fill("7")
    field.press("Enter")
    expect(page.locator(DARE)).to_have_text(re.compile("channel 7$"))
    field.fill("999")
    field.press("Enter")
    expect(page.locator(".live .told")).to_contain_text("This layer has the channels 0 to")
    field.press("Escape")
    expect(page.locator(ROOT)).to_have_count(0)
    page.wait_for_function("() => !location.hash.includes('mirror')")
    assert page.evaluate(_FOCUSED) == "stage"
    expect_live(page)
    page.go_back()
    expect_mirror(page)
    page.keyboard.press("Escape")
    expect(page.locator(ROOT)).to_have_count(0)


@pytest.mark.by_day
def test_a_record_is_kept_with_moments_that_stay_in_the_tab_and_a_frame_is_frozen(
    page: Page, server: str, tmp_path: Path
) -> None:
    sent: list[int] = []
    page.on("request", lambda request: sent.append(len(request.post_data_buffer or b"")))
    page.goto(f"{server}/{LIVE}&channel=5&mirror=1")
    expect_mirror(page)
    moments = page.locator(".live .moments li")
    moments.nth(1).wait_for()
    levels = [float(text.split()[0]) for text in moments.all_inner_texts()]
    assert levels == sorted(levels, reverse=True)
    assert read(page, ".record") == pytest.approx(levels[0], rel=0.01)
    assert max(sent) < 2_000  # no picture goes by a request
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "image/" not in kept

    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a picture").click()
    assert download.value.suggested_filename == f"channel-5-{STEP}.png"
    download.value.save_as(tmp_path / "best.png")
    with Image.open(tmp_path / "best.png") as saved:
        assert saved.width >= 640
        assert saved.height > 300

    page.get_by_role("button", name="Surprise me").click()
    expect(page.locator(DARE)).not_to_have_text(re.compile("channel 5$"))
    page.locator(".live .number input").fill("5")
    page.locator(".live .number input").press("Enter")
    expect(page.locator(DARE)).to_have_text(re.compile("channel 5$"))
    page.keyboard.press("Escape")  # the record is there when one comes back
    expect_live(page)
    page.keyboard.press("m")
    expect_mirror(page)
    assert moments.count() >= 2
    page.get_by_role("button", name="Clear").click()
    assert moments.count() <= 1

    page.locator("body").press(" ")  # a frame is frozen out of the mirror
    wait_for_grid(page)
    expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()
    expect(page.locator(STAGE)).to_be_visible()
    page.get_by_role("button", name="Back to live").click()
    expect_mirror(page)


def test_it_is_mirrored_above_the_presenter_s_bar_in_chinese_and_is_left_first(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/{LIVE}&channel=5&mirror=1&present=1&lang=zh")
    expect_mirror(page)
    expect(page.locator(DARE)).to_have_text("举起能让通道 5 亮起来的东西")
    words = page.locator(".live .desk").inner_text().replace(STEP, "").replace("ms", "")
    assert re.findall(r"[A-Za-z]{3,}", words.split("通道")[0]) == []
    turned: Callable[[str], str] = lambda part: page.evaluate(  # noqa: E731
        f"getComputedStyle({_ROOT}.querySelector('{part}')).transform"
    )
    assert {turned("video"), turned(".glow")} == {"matrix(-1, 0, 0, 1, 0, 0)"}
    page.locator(".live .flip input").uncheck()
    assert {turned("video"), turned(".glow")} == {"none"}
    page.locator(".live .strength input").fill("0.5")
    assert page.evaluate(f"getComputedStyle({_ROOT}.querySelector('.glow')).opacity") == "0.5"
    bar, glass = settled_boxes(page, page.locator(".presenter .bar"), page.locator(".live .glass"))
    assert glass["y"] + glass["height"] <= bar["y"] + 1
    expect(page.locator(".presenter .bar button").first).to_be_visible()
    page.locator("body").press("Escape")
    expect(page.locator(ROOT)).to_have_count(0)
    assert "present=1" in page.url
    expect_live(page)

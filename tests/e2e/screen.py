"""Reading and operating the page as a person does."""

import base64
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Locator, Page, Request, Route, expect

from scripts.browsing import grid_bytes
from scripts.servers import Server

SHAPESNET = "?model=ShapesNet"
"""The link to the network whose layers and numbers a test knows by name."""


# When the page last asked its server for something, how long an answer may take, and when it last
# heard of one; frames of a live stream come and go all the time, on a line of their own. A run is
# answered however busy the machine is, unless the line is cut.
_LINE = """
window.hvLine = {asked: 0, patience: 0, heard: 1};
const asksForRun = (message) => message[0] === 90; // the tag of rerun_script in a BackMsg
window.WebSocket = class extends window.WebSocket {
  constructor(...given) {
    super(...given);
    if (this.url.includes("/_stcore/stream"))
      this.addEventListener("message", () => { window.hvLine.heard = performance.now(); });
  }
  send(message) {
    if (this.url.includes("/_stcore/stream")) {
      const patience = asksForRun(message) ? 10_000 : 1000;
      Object.assign(window.hvLine, {asked: performance.now(), patience});
    }
    super.send(message);
  }
};
// How many of the explorer's questions have no answer yet.
window.hvQuestions = 0;
const ask = window.fetch;
window.fetch = async (...given) => {
  if (!String(given[0]).includes("/hookviz/explorer")) return ask(...given);
  window.hvQuestions += 1;
  try { return await ask(...given); } finally { window.hvQuestions -= 1; }
};
"""

# Whether nothing is on its way: no run, nothing left of the one before, nothing that fades or
# loads. What was asked and not answered in its time was no question.
_RESTS = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const {asked, patience, heard} = window.hvLine ?? {asked: 0, patience: 0, heard: 1};
  const now = performance.now();
  const rests = app !== null && !["initial", "running"].includes(app.dataset.testScriptState)
    && (heard > asked || now - asked > patience) && now - asked > 60 && !window.hvQuestions
    && document.querySelector("[data-stale=true], [data-testid=stSkeleton]") === null
    && !document.getAnimations().some((each) => each.playState === "running"
      && each.effect?.getComputedTiming().endTime !== Infinity);
  const since = rests ? window.hvRests ?? now : null;
  window.hvRests = since;
  return since !== null && now - since >= 100;
}"""


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """A person's own browser, which is asked to keep still: what moves while a page loads is a
    fifth of what the page costs. With ``reduced_motion="no-preference"`` it moves.
    """
    context = browser.new_context(**{"reduced_motion": "reduce", **options})
    context.add_init_script(_LINE)
    return context


def at_rest(page: Page) -> None:
    """Wait until the page has drawn what it asked for, and nothing of the run before is left."""
    page.evaluate("window.hvRests = null")
    page.wait_for_function(_RESTS, polling=20, timeout=60_000)


@contextmanager
def without_errors(server: Server) -> Iterator[None]:
    """Fail where the server's log tells of something that went wrong in the block."""
    before = server.errors()
    yield
    assert server.errors() == before


def grid_pixels(page: Page) -> Image.Image:
    """The grid on the screen as RGBA pixels."""
    return Image.open(io.BytesIO(grid_bytes(page))).convert("RGBA")


def pixels(canvas: Locator) -> NDArray[np.uint8]:
    """What a canvas is painted with as RGBA ``(H, W, 4)``, in its own pixels."""
    url = str(canvas.evaluate("element => element.toDataURL()"))
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as painted:
        return np.asarray(painted.convert("RGBA"))


def read_number(text: str | None) -> float:
    """The first number in a text, as a person reads it."""
    return read_numbers(text or "")[0]


def read_numbers(text: str) -> list[float]:
    """All numbers in a text, with real minus signs, grouped thousands and powers of ten."""
    found = re.findall(r"([−-]?\d[\d,]*(?:\.\d+)?)(?:×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert found, text
    return [
        float(f"{digits.replace('−', '-').replace(',', '')}e{power.translate(_RAISED) or 0}")
        for digits, power in found
    ]


_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


_OF_VIEW = ("Sort by", "Channels", "Scale", "Colours", "Which channels")


def open_view(page: Page) -> None:
    """Open the menu of how channels are drawn."""
    page.locator(".view-row .opens").click()


def open_channel_menu(page: Page) -> None:
    """Open the menu of questions about the channel that is picked, and of its files."""
    page.get_by_role("button", name="Ask or save").click()


def open_model_settings(page: Page) -> None:
    """Open the sidebar's choices of family, weights and input size."""
    page.get_by_text("Family, weights, input size").click()


def open_more(page: Page, tab: str = "Share") -> Locator:
    """Open the menu of all that can be done with what is on the screen, at one of its tabs."""
    page.get_by_role("button", name="More", exact=True).click()
    body = page.get_by_test_id("stPopoverBody")
    body.get_by_role("tab", name=tab).click()
    return body


def compare(page: Page) -> None:
    """Pin what is on the screen as A."""
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("button", name="Compare").click()


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option of a select box, as a person would; layers have a number too."""
    box = page.get_by_role("combobox", name=label, exact=True)
    wanted = re.compile(rf"(\d+ · )?{re.escape(option)}")
    is_in_menu = label in _OF_VIEW and not box.is_visible()
    if is_in_menu:
        open_view(page)
    if box.evaluate("element => element.tagName") == "SELECT":
        listed = box.locator("option").all_text_contents()
        box.select_option(label=next(each for each in listed if wanted.fullmatch(each.strip())))
        if is_in_menu:
            open_view(page)  # the same button closes it
        return
    box.click()
    box.fill(option)
    page.get_by_role("option", name=re.compile(f"^{wanted.pattern}$")).click()


def look_through(page: Page, question: str) -> None:
    """Go to a lens by its question, from anywhere: two clicks."""
    page.get_by_role("button", name="All questions").first.click()
    page.get_by_role("button", name=re.compile(f"^{re.escape(question)}")).click()


def link_of(page: Page) -> dict[str, str]:
    """All words of the address: those of the query, and those of the fragment."""
    address = urlsplit(page.evaluate("location.href"))
    return words_of(f"{address.query}&{address.fragment}")


def words_of(link: str) -> dict[str, str]:
    """The words of a link's query."""
    return dict(parse_qsl(link.rpartition("?")[2]))


def leave_lens(page: Page) -> None:
    """Go from a lens to the channels."""
    page.get_by_role("button", name="All channels").click()


def asked_in(request: Request) -> Any:
    """What a request asks of the explorer, with the view that it is about."""
    return json.loads(request.post_data or "{}")


class Questions:
    """What a page asks of the explorer, as a test lets it pass.

    Made before the page is opened: a route that a page gets later may not be in force yet when its
    next question goes out.

    Attributes:
        act: gets each question; None lets all of them pass.
    """

    def __init__(self, page: Page) -> None:
        self.act: Callable[[Route], None] | None = None
        page.route("**/hookviz/explorer?*", self._meet)

    def hold(self, name: str) -> list[Route]:
        """Hold back the questions of a name from now on, in what is returned; let others pass."""
        held: list[Route] = []

        def act(route: Route) -> None:
            if asked_in(route.request)["question"]["name"] == name:
                held.append(route)
            else:
                route.continue_()

        self.act = act
        return held

    def _meet(self, route: Route) -> None:
        (self.act or Route.continue_)(route)


def expect_caption(page: Page, text: str) -> None:
    """Wait for a line of small text that contains `text`."""
    expect(page.get_by_text(re.compile(re.escape(text))).first).to_be_visible()


IS_MAP_PAINTED = """
() => {
  const inside = (root) => root.querySelector(".whole canvas");
  const roots = [...document.querySelectorAll("*")].map((each) => each.shadowRoot).filter(Boolean);
  const canvas = [document, ...roots].map(inside).find(Boolean);
  if (!canvas?.width) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return data.some((level) => level > 0);
}
"""
"""Script: whether the map of the whole network is drawn, in the page or below a shadow root."""

"""The article of the site: its frames show layers and channels that its page has."""

import re
from pathlib import Path
from urllib.parse import parse_qs

from playwright.sync_api import Browser, expect

from scripts.article import write_article


def test_each_frame_shows_what_its_link_asks_for(browser: Browser, tmp_path: Path) -> None:
    write_article(tmp_path)
    text = (tmp_path / "index.html").read_text("utf-8")
    links = [parse_qs(link) for link in re.findall(r'src="star\.html\?([^"]*)"', text)]
    assert len(links) == 2
    page = browser.new_page()
    page.goto((tmp_path / "index.html").as_uri())
    for at, link in enumerate(links):
        frame = page.frame_locator("iframe").nth(at)
        picture = frame.locator(".main:not(.stale) .picture[data-key]")
        picture.wait_for(state="attached")
        chosen = frame.locator(".layer-row select.layers option:checked")
        assert (chosen.text_content() or "").endswith(link["layer"][0])
        for gone in (".seen-head", ".tree-side", ".layer-row", ".view-row", "footer"):
            expect(frame.locator(gone)).to_be_hidden()  # tiles and inspector alone
    first = page.frame_locator("iframe").first
    expect(first.locator("h3")).to_contain_text("Channel")
    first.locator("figure .stage").click(position={"x": 20, "y": 20})
    expect(first.locator("h3")).to_have_text("Channel 0")

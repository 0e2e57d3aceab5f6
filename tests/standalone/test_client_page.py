"""The file itself: nothing in it runs but its own script, whatever it is given."""

import base64
import hashlib
import re

import pytest

from hookviz.standalone.client_page import page_html
from hookviz.standalone.packing import packed

BAD = "</title><script>bad()</script>\"'<img src=x onerror=bad()>"


def between(html: str, begin: str, end: str) -> str:
    return html.partition(begin)[2].partition(end)[0]


def hashed(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def test_the_policy_names_the_script_and_the_style_and_nothing_from_outside() -> None:
    html = page_html("a page", {"page": packed({})}, {})
    policy = between(html, 'http-equiv="Content-Security-Policy" content="', '"')
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    script, style = between(html, "<script>", "</script>"), between(html, "<style>", "</style>")
    assert rules == {
        "default-src": "'none'",
        "script-src": f"'sha256-{hashed(script)}'",
        "style-src": f"'sha256-{hashed(style)}'",
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert html.index("Content-Security-Policy") < html.index("<style>")
    assert re.findall(r"https?://\S+", html) == []
    assert html.startswith("<!doctype html>\n")
    html = page_html("a page", {"first": packed(1)}, {"last": packed(2)})
    places = [html.index(part) for part in ('id="first"', "<script>", 'id="last"')]
    assert places == sorted(places)


def test_no_text_becomes_markup() -> None:
    html = page_html(BAD, {"page": packed({"name": BAD})}, {"rest": packed(BAD)})
    assert "bad()</script>" not in html
    assert html.count("<script>") == html.count("<title>") == html.count("<h2>") == 1
    assert "&lt;script&gt;bad()" in between(html, "<title>", "</title>")
    with pytest.raises(AssertionError, match="page"):
        page_html("a page", {}, {"page": "</script>"})

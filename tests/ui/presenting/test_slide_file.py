import json
from typing import Any

import pytest

import hookviz
from hookviz.ui.presenting.slide_file import LONGEST_TITLE, MOST_SLIDES, Slide, read_slides

GOOD = {"title": "Edges", "query": "model=ShapesNet&layer=conv1"}


def written(*slides: Any, version: Any = 1, **more: Any) -> str:
    return json.dumps({"hookviz-slides": version, "slides": list(slides), **more})


def test_slides_are_read_in_order() -> None:
    other = {"title": "  边缘 <b>&amp;  ", "query": "?lens=grad-cam&grad-cam-method=Grad-CAM"}
    assert read_slides(written(GOOD, other, note="more is nothing to us")) == (
        Slide("Edges", "model=ShapesNet&layer=conv1"),
        Slide("边缘 <b>&amp;", "lens=grad-cam&grad-cam-method=Grad-CAM"),
    )
    assert len(read_slides(written(*[GOOD] * MOST_SLIDES))) == MOST_SLIDES


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not written in JSON"),
        ("[" * 100_000, "not written in JSON"),
        ('{"slides": {}}', "no list of slides"),
        ('{"slides": []}', "hookviz-slides is None, and has to be 1"),
        (written(GOOD, version="1"), "hookviz-slides is '1', and has to be 1"),
        (written(GOOD, version="x" * 10_000), "hookviz-slides is 'xxx.*…"),
        (written(), "has 0 slides. From 1 to 100"),
        (written(*[GOOD] * 101), "has 101 slides"),
        (written(GOOD, "x"), "Slide 2: it needs a title and a query, and nothing else"),
        (written({**GOOD, "href": "javascript:x"}), "Slide 1: it needs a title and a query"),
        (written({"title": 3, "query": ""}), "Slide 1: its title and its query have to be texts"),
        (written({"title": " ", "query": ""}), "Slide 1: its title needs from 1 to 80 letters"),
        (written({"title": "x" * (LONGEST_TITLE + 1), "query": ""}), "from 1 to 80 letters"),
        (written({"title": "x", "query": "lyer=1"}), "Slide 1: The link has 'lyer'.* layer"),
        (written({"title": "x", "query": "https://evil.example/"}), "Slide 1: .*does not know"),
        (
            written({"title": "x", "query": "a=" + "b" * 5000}),
            "Slide 1: The link has 5,002 letters",
        ),
        (
            written({"title": "\ud800", "query": ""}),
            "Slide 1: it has letters that can't be written",
        ),
        (" " * 500_001, "too large: 500,000 letters is the most"),
    ],
)
def test_what_is_wrong_is_named(text: str, words: str) -> None:
    with pytest.raises(hookviz.HookVizError, match=words):
        read_slides(text)

from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any
from urllib.parse import urlencode

import pytest
import streamlit as st
from PIL import Image
from streamlit.runtime import caching
from streamlit.testing.v1 import AppTest
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

import hookviz
from hookviz.serving.kept_photographs import kept_photographs
from hookviz.ui import link
from hookviz.ui import recent_images as recent
from hookviz.ui.streamlit_internals import XSRF_COOKIE_NAME
from tests.pictures import encoded, picture
from tests.ui.conftest import APP_TEST_SESSION
from tests.ui.pages import drawn, give, opened
from tests.ui.questions import asked


def names(page: AppTest) -> list[str]:
    if recent._KEY not in page.session_state:
        return []
    return [kept.thumbnail.title for kept in page.session_state[recent._KEY]]


def test_the_last_images_are_kept_and_one_is_gone_back_to() -> None:
    page = opened(model="ShapesNet", image="Upload", upload="unknown")
    assert "somebody's own photograph" in page.info[0].value
    assert "of 451×300 pixels" in drawn(page)  # the same network, layer and channel on a sample
    for number in range(recent.MOST + 2):
        give(page, f"{number}.png", encoded(picture(number, 40 + number, 30)))
        assert f"of {40 + number}×30 pixels" in drawn(page)
        assert not page.info
    assert names(page) == [f"{n}.png" for n in range(recent.MOST + 1, 1, -1)]
    kept = page.session_state[recent._KEY]
    assert page.query_params["upload"] == kept[0].thumbnail.name
    page.query_params["upload"] = kept[-1].thumbnail.name
    del page.session_state[link._ADDRESS]  # as where the browser's Back brings the link
    page.run()
    assert "of 42×30 pixels" in drawn(page)
    give(page, "again.png", encoded(picture(4, 44, 30)))  # known by its pixels: no second tile
    assert names(page)[:2] == ["again.png", f"{recent.MOST + 1}.png"]
    assert len(names(page)) == recent.MOST


def test_a_page_of_a_stack_is_chosen_and_said() -> None:
    stack = BytesIO()
    first, second = (Image.new("I;16", (40 + page, 30), page) for page in (0, 7))
    first.save(stack, "TIFF", save_all=True, append_images=[second])
    page = opened(model="ShapesNet", image="Upload")
    give(page, "stack.tif", stack.getvalue())
    assert "of 40×30 pixels" in drawn(page)
    assert any("Page 1 of 2" in str(each.value) for each in page.caption)
    page.number_input[0].set_value(2).run()
    assert not page.exception
    assert "of 47×30 pixels" in drawn(page)
    assert any("Page 2 of 2" in str(each.value) for each in page.caption)
    page.run()
    assert "of 47×30 pixels" in drawn(page)


MINE, YOURS = b"my browser's own" * 2, b"your browser's one"


@pytest.fixture
def come_with(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[bytes | None], None]]:
    """Has the next pages come from the browser of a token, which is masked anew each time."""

    def come(token: bytes | None) -> None:
        cookies = {} if token is None else {XSRF_COOKIE_NAME: generate_xsrf_token_string(token)}
        monkeypatch.setattr(type(st.context), "cookies", property(lambda _: cookies))

    kept_photographs.cache_clear()
    yield come
    kept_photographs.cache_clear()


def given(**query: str) -> str:
    """The name in the link of a photograph that a page was given before it went."""
    page = opened(model="ShapesNet", image="Upload", **query)
    give(page, "mine.png", encoded(picture(1, 70, 30)))
    caching.clear_session_resource_cache(APP_TEST_SESSION)  # as where its page goes
    return str(page.query_params["upload"])


def test_the_same_browser_has_its_photograph_back_and_no_other(
    come_with: Callable[[bytes | None], None],
) -> None:
    come_with(MINE)
    link = {"model": "ShapesNet", "image": "Upload", "upload": given()}
    for token in (YOURS, None):
        come_with(token)
        page = opened(**link)
        assert "of 451×300 pixels" in drawn(page)
        assert "somebody's own photograph" in page.info[0].value
        assert not names(page)
    for _ in range(2):  # and loaded once more
        come_with(MINE)
        page = opened(**link)
        assert "of 70×30 pixels" in drawn(page)
        assert not page.info
        assert names(page) == ["mine.png"]
        assert page.query_params["upload"] == link["upload"]
        caching.clear_session_resource_cache(APP_TEST_SESSION)
    kept_photographs.cache_clear()
    for token in (None, b"guessed"):  # by which the browser can not be told
        come_with(token)
        assert opened(**{**link, "upload": given()}).info
    assert kept_photographs().used == 0


def test_a_photograph_that_is_pinned_comes_back_too(
    come_with: Callable[[bytes | None], None],
) -> None:
    come_with(MINE)
    parts = {"upload": given(), "name": "mine.png", "model": "ShapesNet", "weights": "pretrained"}
    parts |= {"size": "", "whole": "0", "layer": "stem.first.conv", "step": "stem.first.conv"}
    link = {"model": "ShapesNet", "a": urlencode(parts), "compare": "B"}
    assert "somebody's own photograph" not in str(asked(opened(**link), "tiles"))
    caching.clear_session_resource_cache(APP_TEST_SESSION)
    come_with(YOURS)
    assert "somebody's own photograph" in str(asked(opened(**link), "tiles"))


def test_who_logs_in_after_somebody_in_the_same_browser_gets_nothing_of_theirs(
    come_with: Callable[[bytes | None], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    come_with(MINE)
    monkeypatch.setattr(st, "user", {"sub": "me"})
    link = {"model": "ShapesNet", "image": "Upload", "upload": given()}
    monkeypatch.setattr(st, "user", {"sub": "you"})
    assert opened(**link).info
    monkeypatch.setattr(st, "user", {"sub": "me"})
    assert not opened(**link).info


def test_a_broken_file_leaves_the_image_before() -> None:
    page = opened(model="ShapesNet")
    page.query_params["image"] = "Upload"
    page.run()
    for content in (b"these are only words", encoded(picture(1, 400, 300), "JPEG")[:3000]):
        give(page, "broken.png", content)
        assert len(page.sidebar.error) == 1
        assert "broken.png" in page.sidebar.error[0].value.replace("\\", "")
        assert len(page.error) == 1  # at the uploader, and nowhere else
        assert len(asked(page, "tiles")["order"]) == 32
    assert "of 451×300 pixels" in drawn(page)  # the sample
    give(page, "sound.png", encoded(picture(3, 50, 40)))
    assert not page.error
    give(page, "broken.png", b"\x89PNG\r\n\x1a\n")
    assert page.sidebar.error
    page.run()
    assert page.sidebar.error  # as long as the file is there
    assert "of 50×40 pixels" in drawn(page)
    assert names(page) == ["sound.png"]
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([]).run()
    assert not page.error
    assert "of 50×40 pixels" in drawn(page)


def test_files_are_bounded_in_bytes_and_the_last_one_is_always_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(st, "session_state", {})
    third = recent.MOST_BYTES // 3
    for number, size, kept in (
        (0, third, "0"),
        (1, third, "10"),
        (2, third, "210"),
        (3, 2 * third, "32"),
        (4, recent.MOST_BYTES + 1, "4"),
    ):
        image = hookviz.read_image(encoded(picture(number)))
        assert recent.remember(str(number), bytes(size), image) == str(number)
        assert [each.thumbnail.name for each in recent.recent_images()] == [*kept]

"""The session's last images, as the page keeps them."""

from typing import Any

import numpy as np
import streamlit as st
from streamlit.testing.v1 import AppTest

import hookviz
from hookviz.ui import link
from hookviz.ui import recent_images as recent
from scripts.servers import ROOT
from tests.pictures import encoded, picture
from tests.ui.questions import asked


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "hookviz" / "ui" / "main.py"), default_timeout=60)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    return page


def give(page: AppTest, name: str, content: bytes) -> None:
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([(name, content, "image/png")]).run()
    assert not page.exception


def names(page: AppTest) -> list[str]:
    if recent._KEY not in page.session_state:
        return []
    return [kept.thumbnail.title for kept in page.session_state[recent._KEY]]


def shown(page: AppTest) -> str:
    return "".join(str(element.proto) for element in page.get("html"))


def test_the_last_images_are_kept_and_one_is_gone_back_to() -> None:
    page = opened(model="ShapesNet", image="Upload", upload="unknown")
    assert "somebody's own photograph" in page.info[0].value
    assert "of 451×300 pixels" in shown(page)  # the same network, layer and channel on a sample
    for number in range(recent.MOST + 2):
        give(page, f"{number}.png", encoded(picture(number, 40 + number, 30)))
        assert f"of {40 + number}×30 pixels" in shown(page)
        assert not page.info
    assert names(page) == [f"{n}.png" for n in range(recent.MOST + 1, 1, -1)]
    kept = page.session_state[recent._KEY]
    assert page.query_params["upload"] == kept[0].thumbnail.name
    page.query_params["upload"] = kept[-1].thumbnail.name
    del page.session_state[link._WRITTEN]  # as where the browser's Back brings the link
    page.run()
    assert "of 42×30 pixels" in shown(page)
    give(page, "again.png", encoded(picture(4, 44, 30)))  # known by its pixels: no second tile
    assert names(page)[:2] == ["again.png", f"{recent.MOST + 1}.png"]
    assert len(names(page)) == recent.MOST


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
    assert "of 451×300 pixels" in shown(page)  # the sample
    give(page, "sound.png", encoded(picture(3, 50, 40)))
    assert not page.error
    give(page, "broken.png", b"\x89PNG\r\n\x1a\n")
    assert page.sidebar.error
    page.run()
    assert page.sidebar.error  # as long as the file is there
    assert "of 50×40 pixels" in shown(page)
    assert names(page) == ["sound.png"]
    uploader: Any = page.get("file_uploader")[0]
    uploader.set_value([]).run()
    assert not page.error
    assert "of 50×40 pixels" in shown(page)


def test_files_are_bounded_in_bytes_and_the_last_one_is_always_kept(monkeypatch: Any) -> None:
    state: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", state)
    image = [hookviz.read_image(encoded(picture(number))) for number in range(4)]
    assert all(isinstance(each.pixels, np.ndarray) for each in image)
    third = recent.MOST_BYTES // 3
    for number in range(3):
        assert recent.remember(str(number), bytes(third), image[number]) == str(number)
    assert [kept.thumbnail.name for kept in recent.recent_images()] == ["2", "1", "0"]
    recent.remember("3", bytes(2 * third), image[3])
    assert [kept.thumbnail.name for kept in recent.recent_images()] == ["3", "2"]
    recent.remember("4", bytes(recent.MOST_BYTES + 1), image[0])
    assert [kept.thumbnail.name for kept in recent.recent_images()] == ["4"]

"""What a class computes at once is computed once; and by nobody else's page."""

import threading
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from hookviz.capturing.cache import Budget
from hookviz.ui.serving import class_cache


def asks() -> None:
    import streamlit as st  # noqa: PLC0415 - AppTest runs the source alone

    from hookviz.ui.serving.class_cache import class_cache  # noqa: PLC0415

    st.text(str(class_cache() is not None))


@pytest.mark.parametrize(
    ("link", "image", "shared"),
    [
        ({}, None, False),
        ({"follow": "K7MP3X"}, None, True),
        ({"class": "K7MP3X"}, "Samples", True),
        ({"follow": "K7MP3X"}, "Upload", False),
        ({"class": "K7MP3X"}, "Camera", False),
        ({"class": "K7MP3X"}, "Live", False),
    ],
)
def test_samples_alone_are_shared_and_by_screens_in_a_class(
    link: dict[str, str], image: str | None, shared: bool
) -> None:
    app = AppTest.from_function(asks)
    for name, value in link.items():
        app.query_params[name] = value
    if image:
        app.session_state["image"] = image
    assert app.run().text[0].value == str(shared)


class Quiet:
    """In the place of the page, which such threads have none of."""

    def empty(self) -> "Quiet":
        return self

    def info(self, *_words: Any, **_looks: Any) -> None:
        pass


def test_of_many_at_once_one_computes_and_the_next_one_where_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_cache, "st", Quiet())
    cache = Budget(100).cache(100)
    computed: list[int] = []
    ready = threading.Barrier(12)

    def screen(number: int) -> None:
        ready.wait()
        try:
            with class_cache.computed_once("grad-cam", cache):
                if cache.get("grad-cam") is None:
                    computed.append(number)
                    if len(computed) < 3:
                        raise RuntimeError("stopped")
                    cache.put("grad-cam", number, 1)
        except RuntimeError:
            pass

    threads = [threading.Thread(target=screen, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(computed) == 3
    assert cache.get("grad-cam") == computed[-1]
    assert not class_cache._computed

"""The picture in a saved notebook is of the layer looked at last, drawn once one stays."""

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hookviz.errors import HookVizError
from hookviz.notebook import kernel, saved_picture
from hookviz.notebook.saved_picture import SavedPicture

WAIT_S = 20


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a kernel publishes."""
    outputs: list[dict[str, Any]] = []
    publisher = SimpleNamespace(publish=lambda **output: outputs.append(output))
    running = SimpleNamespace(kernel=object(), display_pub=publisher)
    monkeypatch.setattr(kernel, "shell", lambda: running)
    return outputs


def test_of_quick_steps_the_last_is_drawn(
    published: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_picture, "DELAY_S", 0.2)
    layers, done = ["conv1"], threading.Event()

    def run(call: Callable[[], object]) -> None:
        call()
        done.set()

    picture = SavedPicture(lambda: {"text/plain": layers[-1]}, run)
    picture.follow()  # nothing was put out yet
    picture.put_out()
    for layer in ("conv2", "conv3"):
        layers.append(layer)
        picture.follow()
    assert done.wait(WAIT_S)
    assert [output["data"]["text/plain"] for output in published] == ["conv1", "conv3"]
    assert [output["update"] for output in published] == [False, True]
    assert len({output["transient"]["display_id"] for output in published}) == 1


def test_one_that_rests_or_cant_be_drawn_stays(
    published: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved_picture, "DELAY_S", 0.0)
    done = threading.Event()

    def draw() -> dict[str, str]:
        if published:
            raise HookVizError("the network shows no channels")
        return {"text/plain": "conv1"}

    def run(call: Callable[[], object]) -> None:
        call()
        done.set()

    picture = SavedPicture(draw, run)
    picture.put_out()
    picture.follow()
    assert done.wait(WAIT_S)
    assert len(published) == 1
    monkeypatch.setattr(saved_picture, "DELAY_S", 3600)
    others = set(threading.enumerate())  # the timer that has drawn may be on its way out
    picture.follow()
    [timer] = set(threading.enumerate()) - others
    picture.rest()
    timer.join(WAIT_S)
    assert not timer.is_alive()

"""How a capture shows itself in a kernel; as a table where there is no explorer for it."""

import gc
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from torch import Tensor

import hookviz
from hookviz.notebook import kernel, showing
from hookviz.notebook.widget import ExplorerWidget
from hookviz.types import Capture, Model
from tests.networks import Tiny, as_model, seeded
from tests.notebook.comms import client_comms

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The outputs of a kernel that knows how captures are shown; `show` is what it does."""
    outputs: list[dict[str, Any]] = []
    publisher = SimpleNamespace(publish=lambda data, **_more: outputs.append(data))
    running = SimpleNamespace(
        kernel=object(), display_pub=publisher, display_formatter=DisplayFormatter()
    )
    monkeypatch.setattr(kernel, "shell", lambda: running)
    monkeypatch.setattr(showing, "shell", lambda: running)
    showing.show_captures()
    with client_comms(monkeypatch):
        yield outputs


def show(capture: Capture) -> None:
    """Show a capture as the last line of a cell."""
    running: Any = kernel.shell()
    assert running.display_formatter.format(capture) == ({}, {})


def test_a_capture_is_a_picture_and_the_explorer(
    shown: list[dict[str, Any]], tiny: Model, noise: Tensor
) -> None:
    show(hookviz.capture(tiny, noise))
    picture, widget = shown
    assert picture["image/png"].startswith(b"\x89PNG")
    assert picture["text/plain"] == "<ExplorerWidget of Tiny, conv1>"
    assert VIEW in widget
    assert widget["text/plain"] == ""  # no caption that stays when the picture follows
    assert "image/png" not in widget


def test_it_is_its_table_where_the_network_is_gone(
    shown: list[dict[str, Any]], noise: Tensor
) -> None:
    capture = hookviz.capture(as_model(seeded(Tiny)), noise)
    gc.collect()
    show(capture)
    assert [set(each) for each in shown] == [{"text/html", "text/plain"}]
    assert shown[0]["text/html"] == capture._repr_html_()


def test_it_is_its_table_without_anywidget(
    shown: list[dict[str, Any]], tiny: Model, noise: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "find_spec", lambda _name: None)
    show(hookviz.capture(tiny, noise))
    assert [set(each) for each in shown] == [{"text/html", "text/plain"}]


def test_marimo_gets_the_explorer_or_the_table(
    tiny: Model, noise: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    marimo = SimpleNamespace(running_in_notebook=lambda: True, Html=lambda text: f"Html: {text}")
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setattr(Capture, "_display_", None, raising=False)  # as it was, at the end
    showing.show_captures()
    display: Any = Capture._display_  # type: ignore[attr-defined]
    with client_comms(monkeypatch):
        widget = display(hookviz.capture(tiny, noise, "conv2"))
    assert isinstance(widget, ExplorerWidget)
    assert widget.layer == "conv2"
    capture = hookviz.capture(as_model(seeded(Tiny)), noise)
    gc.collect()
    assert display(capture) == f"Html: {capture._repr_html_()}"

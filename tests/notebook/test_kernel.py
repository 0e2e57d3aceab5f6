"""A script, a terminal and a kernel are told apart; real kernels run in e2e and in examples."""

import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.formatters import DisplayFormatter
from torch import Tensor

import hookviz
from hookviz.notebook import kernel
from hookviz.notebook.widget import ExplorerWidget
from hookviz.types import Capture, Model
from tests.networks import Tiny, as_model, seeded
from tests.notebook.comms import client_comms

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize(
    "ipython",
    [None, SimpleNamespace(get_ipython=lambda: None), SimpleNamespace(get_ipython=object)],
    ids=["without IPython", "in a script", "in a terminal"],
)
def test_there_is_no_kernel(monkeypatch: pytest.MonkeyPatch, ipython: object) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert kernel.shell() is None
    kernel.put_out({"text/plain": "nobody sees it"})


@pytest.mark.parametrize("is_running", [True, False], ids=["in a notebook", "as a script"])
def test_marimo_has_a_notebook_without_ipython(
    monkeypatch: pytest.MonkeyPatch, is_running: bool
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert not kernel.in_notebook()
    marimo = SimpleNamespace(running_in_notebook=lambda: is_running)
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    assert kernel.shell() is None
    assert kernel.in_notebook() is is_running


def test_an_output_is_put_out_and_put_out_again(monkeypatch: pytest.MonkeyPatch) -> None:
    published: list[dict[str, Any]] = []
    publisher = SimpleNamespace(publish=lambda **given: published.append(given))
    running = SimpleNamespace(kernel=object(), display_pub=publisher)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: running))
    assert kernel.shell() is running
    kernel.put_out({"text/plain": "one"}, {"more": 1}, name="a")
    kernel.put_out({"text/plain": "two"}, name="a", again=True)
    kernel.put_out({"text/plain": "three"})
    assert [each["transient"] for each in published] == [{"display_id": "a"}] * 2 + [{}]
    assert [each["update"] for each in published] == [False, True, False]
    assert [each["metadata"] for each in published] == [{"more": 1}, {}, {}]


def test_another_thread_hands_its_call_to_the_thread_of_the_cells(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiting: list[Callable[[], object]] = []
    loop = SimpleNamespace(add_callback=waiting.append)
    running = SimpleNamespace(kernel=SimpleNamespace(io_loop=loop))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: running))
    called: list[str] = []
    kernel.between_cells(lambda: called.append("at once"))
    thread = threading.Thread(
        target=kernel.between_cells, args=[lambda: called.append("later")], name="subshell"
    )
    thread.start()
    thread.join()
    assert called == ["at once"]
    [later] = waiting
    later()
    assert called == ["at once", "later"]


def test_outside_a_kernel_nothing_of_it_is_imported() -> None:
    program = (
        "import sys, hookviz; print([name for name in sys.modules if name.startswith('hookviz.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['hookviz.deprecated']"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, Any]]]:
    """The outputs of a kernel that knows how captures are shown; `show` is what it does."""
    outputs: list[dict[str, Any]] = []
    publisher = SimpleNamespace(publish=lambda data, **_more: outputs.append(data))
    running = SimpleNamespace(
        kernel=object(), display_pub=publisher, display_formatter=DisplayFormatter()
    )
    monkeypatch.setattr(kernel, "shell", lambda: running)
    kernel.show_captures()
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
    kernel.show_captures()
    display: Any = Capture._display_  # type: ignore[attr-defined]
    with client_comms(monkeypatch):
        widget = display(hookviz.capture(tiny, noise, "conv2"))
    assert isinstance(widget, ExplorerWidget)
    assert widget.layer == "conv2"
    capture = hookviz.capture(as_model(seeded(Tiny)), noise)
    gc.collect()
    assert display(capture) == f"Html: {capture._repr_html_()}"

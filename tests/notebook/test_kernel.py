"""A script, a terminal and a kernel are told apart; real kernels run in e2e and in examples."""

import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hookviz.notebook import kernel


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

"""Tell whether this process is a notebook's kernel, and show captures in it as the explorer.

Nothing of Jupyter is imported for it: where a kernel runs, its modules are there. The explorer is
imported when a capture is shown: this is read wherever ``import hookviz`` meets a kernel.
"""

import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hookviz.errors import HookVizError
from hookviz.language.saying import say

if TYPE_CHECKING:
    from hookviz.notebook.widget import ExplorerWidget
    from hookviz.types import Capture


INSTALL = "pip install 'hookviz[notebook]'"


def shell() -> Any | None:
    """Return IPython's shell where it is that of a kernel; None in a script and in a terminal."""
    ipython = sys.modules.get("IPython")
    running = None if ipython is None else ipython.get_ipython()
    return running if getattr(running, "kernel", None) is not None else None


def in_marimo() -> bool:
    """Return whether this process runs a marimo notebook, which has a kernel without IPython."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def in_notebook() -> bool:
    """Return whether a widget has a notebook to be shown in."""
    return shell() is not None or in_marimo()


def has_widgets() -> bool:
    """Return whether anywidget is installed, which shows widgets of our own."""
    return find_spec("anywidget") is not None


def check_widgets() -> None:
    """Raise where anywidget is not installed.

    Raises:
        HookVizError: it is not; the message names the command that installs it.
    """
    if not has_widgets():
        raise HookVizError(
            say(
                "The explorer in a notebook needs the package anywidget, which is not installed: "
                "{install}, and restart the kernel.",
                install=INSTALL,
            )
        )


def between_cells(call: Callable[[], object]) -> None:
    """Call in the thread that runs the cells, between two of them; at once in that thread.

    With JupyterLab's subshells a message arrives in another thread, while a cell runs.
    """
    loop = getattr(getattr(shell(), "kernel", None), "io_loop", None)
    if loop is None or threading.current_thread() is threading.main_thread():
        call()
    else:
        loop.add_callback(call)


def put_out(
    data: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
    *,
    name: str = "",
    again: bool = False,
) -> None:
    """Put an output below the cell that runs, by its MIME types; without a kernel nothing happens.

    Args:
        data: the output, by MIME type.
        more: what is said about these.
        name: by which it is put out again.
        again: in place of the output of that name.
    """
    running = shell()
    if running is not None:
        transient = {"display_id": name} if name else {}
        running.display_pub.publish(
            data=dict(data), metadata=dict(more or {}), transient=transient, update=again
        )


def show_captures() -> None:
    """Tell this kernel how a capture is shown; without a kernel nothing happens."""
    running = shell()
    if in_marimo():
        from hookviz.types import Capture  # noqa: PLC0415 - marimo asks the class

        Capture._display_ = _marimo_output  # type: ignore[attr-defined]
    elif running is not None:
        formatter = running.display_formatter.ipython_display_formatter
        formatter.for_type_by_name("hookviz.types", "Capture", _show_capture)


def _show_capture(capture: "Capture") -> None:
    """Show a capture as the explorer, or as its table where that can't be: the network is gone."""
    widget = _explorer(capture)
    if widget is not None:
        widget.put_out()
    else:
        put_out({"text/html": capture._repr_html_(), "text/plain": repr(capture)})


def _marimo_output(capture: "Capture") -> Any:
    """Return what marimo shows for a capture."""
    return _explorer(capture) or sys.modules["marimo"].Html(capture._repr_html_())


def _explorer(capture: "Capture") -> "ExplorerWidget | None":
    """Return the explorer of a capture; None where there is none, and its table says more."""
    from hookviz.errors import HookVizError  # noqa: PLC0415 - when one is shown, all of it is there
    from hookviz.explorer.subject import model_of  # noqa: PLC0415

    if has_widgets():
        from hookviz.notebook.widget import ExplorerWidget  # noqa: PLC0415

        try:
            return ExplorerWidget.of_capture(capture, model_of(capture))
        except HookVizError:
            pass
    return None

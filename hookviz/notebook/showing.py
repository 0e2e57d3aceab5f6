"""Have captures show themselves as the explorer in a notebook; anywhere else they stay a table.

Nothing is imported until one is shown: this is read wherever ``import hookviz`` meets a kernel.
"""

import sys
from typing import TYPE_CHECKING, Any

from hookviz.notebook.kernel import has_widgets, in_marimo, put_out, shell

if TYPE_CHECKING:
    from hookviz.notebook.widget import ExplorerWidget
    from hookviz.types import Capture


def show_captures() -> None:
    """Tell this kernel how a capture is shown; without a kernel nothing happens."""
    running = shell()
    if in_marimo():
        from hookviz.types import Capture  # noqa: PLC0415 - marimo asks the class

        Capture._display_ = _in_marimo  # type: ignore[attr-defined]
    elif running is not None:
        formatter = running.display_formatter.ipython_display_formatter
        formatter.for_type_by_name("hookviz.types", "Capture", show_capture)


def show_capture(capture: "Capture") -> None:
    """Show a capture as the explorer, or as its table where that can't be: the network is gone."""
    widget = _explorer(capture)
    if widget is not None:
        widget.put_out()
    else:
        put_out({"text/html": capture._repr_html_(), "text/plain": repr(capture)})


def _in_marimo(capture: "Capture") -> Any:
    """Return what marimo shows for a capture."""
    return _explorer(capture) or sys.modules["marimo"].Html(capture._repr_html_())


def _explorer(capture: "Capture") -> "ExplorerWidget | None":
    """Return the explorer of a capture; None where there is none, and its table says more."""
    from hookviz.errors import HookVizError  # noqa: PLC0415 - when one is shown, all of it is there
    from hookviz.explorer.given import model_of  # noqa: PLC0415

    if has_widgets():
        from hookviz.notebook.widget import ExplorerWidget  # noqa: PLC0415

        try:
            return ExplorerWidget.of_capture(capture, model_of(capture))
        except HookVizError:
            pass
    return None

"""Have captures show themselves as the explorer in a notebook; anywhere else they stay a table.

Nothing is imported until one is shown: this is read wherever ``import hookviz`` meets a kernel.
"""

from typing import TYPE_CHECKING

from hookviz.notebook.kernel import has_widgets, put_out, shell

if TYPE_CHECKING:
    from hookviz.types import Capture


def show_captures() -> None:
    """Tell this kernel how a capture is shown; without a kernel nothing happens."""
    running = shell()
    if running is not None:
        formatter = running.display_formatter.ipython_display_formatter
        formatter.for_type_by_name("hookviz.types", "Capture", show_capture)


def show_capture(capture: "Capture") -> None:
    """Show a capture as the explorer, or as its table where that can't be: the network is gone."""
    from hookviz.errors import HookVizError  # noqa: PLC0415 - when one is shown, all of it is there
    from hookviz.explorer.given import model_of  # noqa: PLC0415

    if has_widgets():
        from hookviz.notebook.widget import ExplorerWidget  # noqa: PLC0415

        try:
            ExplorerWidget.of_capture(capture, model_of(capture)).put_out()
            return
        except HookVizError:
            pass  # its table says what it holds
    put_out({"text/html": capture._repr_html_(), "text/plain": repr(capture)})

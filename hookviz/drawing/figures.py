"""Write figures for print as files."""

import io
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hookviz.drawing.fonts import readable
from hookviz.errors import SettingError, one_of, shorten
from hookviz.language.saying import say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")
"""What a figure can be written as."""

_DATES = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
_drawing = threading.Lock()  # matplotlib promises no thread safety, and drawing holds the GIL


def new_figure(**options: Any) -> "Figure":
    """Return an empty `matplotlib.figure.Figure` with its options.

    Importing that takes 0.2 s: only who draws for print waits for it.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(**options)


def check_dpi(dpi: int) -> None:
    """Refuse a resolution that is no whole number from 50 to 600.

    Raises:
        SettingError: it is none.
    """
    if not isinstance(dpi, int) or isinstance(dpi, bool) or not 50 <= dpi <= 600:
        raise SettingError(
            say("dpi={dpi!r} is not a whole number of dots per inch, 50 to 600.", dpi=dpi)
        )


def width_in_points(width_cm: float) -> float:
    """Return the width in points.

    Raises:
        SettingError: it is not from 6 to 60 cm.
    """
    if isinstance(width_cm, bool | str) or not 6 <= width_cm <= 60:
        raise SettingError(
            say(
                "width_cm={width} is not a number of centimetres from 6 to 60; a column has 8.5.",
                width=shorten(repr(width_cm)),
            )
        )
    return width_cm / 2.54 * 72


def figure_file(
    draw: Callable[[], "Figure"],
    format: str,  # noqa: A002 - as savefig
    *,
    dpi: int,
    keeps_text: bool = False,
) -> bytes:
    """Write the figure that `draw` makes: PNG and PDF are the same bytes every time.

    Threads draw one after the other. An SVG that keeps its text has letters, in the font of whoever
    opens it, not their outlines, and is the same every time.

    Raises:
        SettingError: `format` is not in `FORMATS`.
    """
    from matplotlib import rc_context  # noqa: PLC0415

    one_of(say("format"), format, FORMATS)
    file = io.BytesIO()
    options: Any = {"svg.fonttype": "none", "svg.hashsalt": "HookViz"} if keeps_text else {}
    with _drawing, rc_context(options):
        readable(draw()).savefig(file, format=format, dpi=dpi, metadata=_DATES[format])
    return file.getvalue()

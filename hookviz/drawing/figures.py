"""Write figures for print as files."""

import io
import threading
from collections.abc import Callable

from matplotlib.figure import Figure

from hookviz.drawing.fonts import readable
from hookviz.errors import one_of
from hookviz.language.saying import say

FORMATS = ("png", "pdf", "svg")
"""What a figure can be written as."""

_DATES = {"png": {}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
_drawing = threading.Lock()  # matplotlib promises no thread safety, and drawing holds the GIL


def figure_file(draw: Callable[[], Figure], format: str, *, dpi: int) -> bytes:  # noqa: A002 - as savefig
    """Write the figure that `draw` makes: PNG and PDF are the same bytes every time.

    Threads draw one after the other.

    Raises:
        SettingError: `format` is not in `FORMATS`.
    """
    one_of(say("format"), format, FORMATS)
    file = io.BytesIO()
    with _drawing:
        readable(draw()).savefig(file, format=format, dpi=dpi, metadata=_DATES[format])
    return file.getvalue()

"""Say in a sentence, to whoever sent a file, why its reading process gave nothing of it."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hookviz.errors import HookVizError, ImageError, ModelError, WeightsError, shorten
from hookviz.language.saying import say

if TYPE_CHECKING:
    from hookviz.reader.server_process import Ended

_log = logging.getLogger(__name__)
_MEGABYTE = 1024 * 1024
_KILLED, _OUT_OF_TIME = -9, -24  # by SIGKILL and SIGXCPU, which Windows lacks
_LONGEST, _LONGEST_LINE, _MOST_LINES = 1000, 300, 10
_ERRORS = {kind.__name__: kind for kind in (HookVizError, ImageError, ModelError, WeightsError)}


def check(ended: "Ended", kind: type[HookVizError], name: str, request: Mapping[str, Any]) -> None:
    """Raise unless there are facts; what the reader logged is logged.

    Args:
        ended: how the process ended.
        kind: what to raise where the file ended it.
        name: what to call the file.
        request: what was asked for.

    Raises:
        HookVizError: of that kind, or the reader's own.
    """
    header = ended.header
    if header is None:
        _log.warning("%r ended its reader: %s", shorten(name), ended)
        raise kind(_why(ended, name, request))
    lines = header.get("log")
    for line in lines[:_MOST_LINES] if isinstance(lines, list) else ():
        _log.info("%s", _clean(line, _LONGEST_LINE))
    error = header.get("error")
    if error == MemoryError.__name__:
        raise kind(_too_large(name, request))
    if error is not None:
        raise _ERRORS.get(str(error), kind)(_clean(header.get("text"), _LONGEST))
    if not isinstance(header.get("facts"), dict):
        raise kind(crashed(name))


def crashed(name: str) -> str:
    """Return the sentence for a file whose reader crashed, or answered what can't be."""
    return say(
        "{file} made its reader crash: it is damaged, or was made to do so. Get the file again, "
        "or save it anew.",
        file=quoted(name),
    )


def quoted(name: str) -> str:
    """Return a file's name as sentences have it."""
    return repr(shorten(name))


def _why(ended: "Ended", name: str, request: Mapping[str, Any]) -> str:
    if ended.late or ended.code == _OUT_OF_TIME:
        return say(
            "{file} takes longer than {seconds} seconds to read. Save it anew with another "
            "program, or give another file.",
            file=quoted(name),
            seconds=request["seconds"],
        )
    if ended.code == _KILLED:  # by the kernel, which had no memory left
        return _too_large(name, request)
    return crashed(name)


def _too_large(name: str, request: Mapping[str, Any]) -> str:
    return say(
        "{file} takes more than {size:,} MB of memory to read; give a smaller version.",
        file=quoted(name),
        size=request["memory"] // _MEGABYTE,
    )


def _clean(text: object, longest: int) -> str:
    """Return a text that came out without signs that can't be shown, and no longer than that."""
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    return shorten("".join(letter if letter.isprintable() else " " for letter in whole), longest)

"""Log what happened, never what was on the pictures or what their files were called.

An event has a name and a few fields out of `FIELDS`. As JSON every record is one line, and says
nothing else: a message's arguments and an exception's text may hold what a visitor gave, so only
the words of the code and the places in it are written.
"""

import json
import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, TextIO

from hookviz.wording import one_line

FIELDS = frozenset(
    {
        *("frames", "layer", "model", "ms", "outcome", "question", "refused", "request", "runs"),
        *("session", "skipped", "threads", "waited_ms"),
    }
)
"""Fields that an event may have."""

_OURS = frozenset({"hookviz", "streamlit", "uvicorn"})

Value = str | int | float

_log = logging.getLogger("hookviz.events")
_bound: ContextVar[dict[str, Value] | None] = ContextVar("hookviz_log_fields", default=None)


def event(name: str, **fields: Value) -> None:
    """Log that something happened, with these fields and those that are bound; `FIELDS` only."""
    assert fields.keys() <= FIELDS, fields.keys() - FIELDS
    _log.info(name, extra={"fields": fields})


@contextmanager
def bound(**fields: Value) -> Iterator[None]:
    """Put these fields into every record of this thread in the block; `FIELDS` only."""
    assert fields.keys() <= FIELDS, fields.keys() - FIELDS
    token = _bound.set({**(_bound.get() or {}), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def set_up(form: str, stream: TextIO | None = None) -> None:
    """Write HookViz's records to `stream` (the standard error): warnings as ``text``, or ``json``.

    As JSON events are written too. Calling it again replaces the former handler. From here on
    no record of HookViz, Streamlit or uvicorn has line ends or control characters of a visitor's.
    """
    if logging.getLogRecordFactory() is not _record:
        logging.setLogRecordFactory(_record)
    logger = logging.getLogger("hookviz")
    for old in [handler for handler in logger.handlers if isinstance(handler, _Handler)]:
        logger.removeHandler(old)
    handler = _Handler(stream or sys.stderr)
    if form == "json":
        handler.setFormatter(_Json())
        handler.addFilter(lambda record: hasattr(record, "fields") or _is_serious(record))
        logger.setLevel(logging.INFO)
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        handler.setLevel(logging.WARNING)
        logger.setLevel(logging.NOTSET)
    logger.addHandler(handler)


def _is_serious(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.WARNING


class _OneLineRecord(logging.LogRecord):
    """Record whose text is one line: Streamlit logs what a browser sends as it came."""

    def getMessage(self) -> str:  # noqa: N802 - logging's name
        return one_line(super().getMessage())


def _record(name: str, *args: Any, **more: Any) -> logging.LogRecord:
    kind = _OneLineRecord if name.partition(".")[0] in _OURS else logging.LogRecord
    return kind(name, *args, **more)


class _Handler(logging.StreamHandler[TextIO]):
    """Handler of ours, so that it can be told from others'."""


class _Json(logging.Formatter):
    """Formatter that writes a record as one line of JSON, without its arguments."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": one_line(str(record.msg)),  # without its arguments
            **_plain(_bound.get() or {}),
            **_plain(getattr(record, "fields", {})),
        }
        if record.exc_info and record.exc_info[0] is not None:
            kind, _, trace = record.exc_info
            entry["error"] = kind.__name__
            entry["where"] = [
                f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}"
                for frame in traceback.extract_tb(trace, limit=-8)
            ]
        return json.dumps(entry, ensure_ascii=False)


def _plain(fields: Mapping[str, Value]) -> dict[str, Value]:
    return {
        name: one_line(value) if isinstance(value, str) else value for name, value in fields.items()
    }

"""What a person has picked while frames go by, as the page tells it."""

import json
from dataclasses import dataclass
from typing import Any

from hookviz.errors import HookVizError, shorten
from hookviz.language.saying import say

LONGEST = 1024
"""Letters of a message; one of ours has fewer than a hundred."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What is to be told of each frame beside the grid.

    Attributes:
        channel: the channel that is picked up, if one is.
        hold: whether the colours stay as they were when this became true.
        cell: row and column of a cell of the channel whose value is told, if any.
    """

    channel: int | None = None
    hold: bool = False
    cell: tuple[int, int] | None = None


def read_stream_options(text: str) -> StreamOptions:
    """The options in a message.

    Raises:
        HookVizError: it is too long, no JSON, or says something else.
    """
    try:
        told = json.loads(text) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise _strange(text)
    match told.get("channel"), told.get("hold", False), told.get("cell"):
        case (channel, bool(hold), [row, column]) if all(map(_counts, (row, column))):
            options = StreamOptions(channel, hold, (row, column))
        case (channel, bool(hold), None):
            options = StreamOptions(channel, hold)
        case _:
            raise _strange(text)
    if options.channel is not None and not _counts(options.channel):
        raise _strange(text)
    return options


def _counts(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _strange(text: str) -> HookVizError:
    return HookVizError(
        say(
            '{text} says nothing to a stream of frames; {{"channel": 12, "hold": false, '
            '"cell": [3, 4]}} would, in {limit} letters at most.',
            text=shorten(repr(text), 60),
            limit=LONGEST,
        )
    )

"""Declare what a stream of frames shows, and read what its viewer wants to know of each."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from hookviz import shallow_json
from hookviz.errors import HookVizError, shorten
from hookviz.explorer.rendering import Look
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import say
from hookviz.types import Model

LONGEST = 1024
"""Letters of a message; one of ours has fewer than a hundred."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a stream shows: model, step and drawing. Replaced as a whole by each new choice.

    Attributes:
        use_model: borrows the model for a block; called in other threads than the page's.
        size: side of the input in pixels, as `hookviz.prepare` has it; None for the model's own.
        whole: whether the input is the whole frame instead of its centre crop.
        step: the `ActivationKey`, as text, whose output is drawn.
        look: how it is drawn.
        language: in which the frames are described.
    """

    use_model: Callable[[], AbstractContextManager[Model]]
    size: int | None
    whole: bool
    step: str
    look: Look
    language: str = ENGLISH


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What a viewer wants to know of each frame beside the grid.

    Attributes:
        channel: the channel that is picked up, if one is.
        hold: whether the colours stay as they were when this became true.
        cell: row and column of a cell of the channel whose value is wanted, if any.
        values: whether the picked channel's map is wanted as numbers, in place of the grid.
    """

    channel: int | None = None
    hold: bool = False
    cell: tuple[int, int] | None = None
    values: bool = False


def read_stream_options(text: str) -> StreamOptions:
    """Read the options in a message.

    Raises:
        HookVizError: it is too long, no JSON, or says something else.
    """
    try:
        message = shallow_json.parse(text) if len(text) <= LONGEST else None
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise _unknown_message(text)
    channel, cell = message.get("channel"), message.get("cell")
    match message.get("hold", False), message.get("values", False), cell:
        case (bool(hold), bool(values), [row, column]) if all(map(_is_index, (row, column))):
            options = StreamOptions(channel, hold, (row, column), values)
        case (bool(hold), bool(values), None):
            options = StreamOptions(channel, hold, values=values)
        case _:
            raise _unknown_message(text)
    if options.channel is not None and not _is_index(options.channel):
        raise _unknown_message(text)
    return options


def _is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31


def _unknown_message(text: str) -> HookVizError:
    return HookVizError(
        say(
            '{text} says nothing to a stream of frames; {{"channel": 12, "hold": false, '
            '"cell": [3, 4]}} would, in {limit} letters at most.',
            text=shorten(repr(text), 60),
            limit=LONGEST,
        )
    )

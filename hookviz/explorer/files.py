"""Answer with a channel as a file: a page for print, or its numbers."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hookviz.drawing.channel_page import channel_csv, channel_page
from hookviz.errors import one_of
from hookviz.explorer.asked import asked_number
from hookviz.explorer.drawn import drawn
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say


class _Kind(NamedTuple):
    """Kind of file: what its name ends in, and its media type."""

    ending: str
    mime: str


_KINDS = {
    "channel-png": _Kind("png", "image/png"),
    "channel-pdf": _Kind("pdf", "application/pdf"),
    "channel-csv": _Kind("csv", "text/csv"),
}


def answer_file(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer with a channel as a file, of one of three kinds: what it is called, and its bytes.

    Raises:
        NotThereError: there is no such channel.
        SettingError: there is no such kind of file.
        HookVizError: as `drawn`.
    """
    kind = _KINDS[one_of("kind", facts.get("kind"), _KINDS)]
    shown = drawn(subject, view)
    maps, title = shown.maps.numpy(), shown.grid.title
    channel = asked_number(facts, "channel", len(maps), shown.looked.step)
    model, values = subject.model.name, maps[channel]
    if kind.ending == "csv":
        data = channel_csv(values).encode()
    else:
        words = say(
            "{model} · {grid} · channel {channel}", model=model, grid=title, channel=channel
        )
        with subject.take_turn(say("Drawing the channels"), "file", ""):  # matplotlib takes a while
            data = channel_page(
                shown.grid,
                channel,
                values,
                image=subject.image.pixels,
                crop=subject.model_input.crop,
                title=words,
                format=kind.ending,
            )
    return Answer(
        {"name": f"{model}-{title}-channel-{channel}.{kind.ending}", "mime": kind.mime}, data
    )

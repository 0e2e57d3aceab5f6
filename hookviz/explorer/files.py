"""Answer with a file: a channel as a page for print or as numbers, or the map of the network."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hookviz.drawing.channel_page import channel_csv, channel_page
from hookviz.errors import one_of
from hookviz.explaining.network_map.mapped_network import map_network
from hookviz.explorer.drawn import drawn
from hookviz.explorer.question import Answer, Report, asked_number
from hookviz.explorer.subject import Subject, between_layers
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
    "map-png": _Kind("png", "image/png"),
    "map-svg": _Kind("svg", "image/svg+xml"),
}


def answer_file(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer with a channel or the whole network's map as a file: its name and type, and its bytes.

    Raises:
        NotThereError: there is no such channel.
        SettingError: there is no such kind of file.
        HookVizError: as `drawn`.
    """
    asked = one_of("kind", facts.get("kind"), _KINDS)
    kind = _KINDS[asked]
    if asked.startswith("map-"):
        return _map(subject, kind)
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


def _map(subject: Subject, kind: _Kind) -> Answer:
    model = subject.model
    with subject.take_turn(model.title, "file", "") as run:
        drawn = map_network(model, subject.model_input, progress=between_layers(run, model))
        data = drawn.figure_bytes(kind.ending)
    return Answer({"name": f"{model.name}-map.{kind.ending}", "mime": kind.mime}, data)

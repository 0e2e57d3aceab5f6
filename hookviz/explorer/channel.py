"""Answer with one channel: its map with exact values, its numbers, its histogram, A beside B.

`answer_file` has the same as a file, for print or as numbers, and the network's map as one.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.channel_page import channel_csv, channel_page, numbers
from hookviz.drawing.grid import Grid
from hookviz.drawing.statistics import histogram, strongest_cells
from hookviz.errors import one_of
from hookviz.explaining.network_map.mapped_network import map_network
from hookviz.explorer.encoding import channel_map
from hookviz.explorer.glossary import WORDS
from hookviz.explorer.question import Answer, NotThereError, Report, asked_number
from hookviz.explorer.rendering import RenderedGrid, RenderedPair, pair_facts, render
from hookviz.explorer.subject import Subject, between_layers
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.wording import number

_OF = ("a", "b")
_NO_CELL, _WHOLE = 1.0, 100.0  # percent of the height: of a bar that would not be seen, of all


def answer_channel(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer with a channel of the layer; with `of` ``"a"``, with a channel of the pinned A.

    For a pair of one shape the answer compares both, too.

    Raises:
        NotThereError: there is no such channel, or nothing is pinned.
        SettingError: `of` is neither ``"a"`` nor ``"b"``.
        HookVizError: as `render`.
    """
    shown = render(subject, view)
    if one_of("of", facts.get("of", "b"), _OF) == "a":
        of_a = _of_a(_pinned(shown), facts)
        return Answer(of_a | {"colours": subject.colours.diverging})
    maps, compared = shown.maps.numpy(), shown.compared
    channel = asked_number(facts, "channel", len(maps), shown.resolved.step)
    said = channel_facts(shown.grid, maps, channel)
    said["colours"] = subject.colours.diverging  # of the histogram's bars
    if compared is not None and compared.pair.alike:
        of_a = channel_map(compared.pair.a, channel, compared.maps.a[channel])
        said["pair"] = pair_facts(compared.maps, compared.pair, channel) | {"a": of_a}
    return Answer(said)


def channel_facts(
    grid: Grid, maps: NDArray[np.float32], channel: int, *, is_painted: bool = True
) -> dict[str, Any]:
    """Describe a channel with its title, as `described` and `channel_map` do."""
    title = say("Channel {channel}", channel=channel)
    return {"title": title, **described(grid, maps, channel, is_painted=is_painted)}


def described(
    grid: Grid, maps: NDArray[np.float32], channel: int, *, is_painted: bool = True
) -> dict[str, Any]:
    """Describe a channel of `maps`, ``(C, H, W)``, which the grid draws: its map and its numbers.

    Minimum and maximum have the cell where they are. The bars of the histogram are percent of the
    highest one, and below or above zero.
    """
    values = maps[channel]
    of_map = channel_map(grid, channel, values, is_painted=is_painted)
    said = {"channel": channel, **of_map}
    if not np.isfinite(values).any():
        none = say("No cell of this map is a finite number.")
        return said | {
            "numbers": [],
            "histogram": None,
            "dead": "",
            "deadHint": "",
            "noFinite": none,
        }
    extremes = strongest_cells(np.stack([-values, values])).tolist()
    places = [divmod(place, values.shape[1]) for place in extremes]
    cells = dict(zip((say("minimum"), say("maximum")), places, strict=True))
    stats = grid.stats
    dead = values.size > 1 and stats.minimum[channel] == stats.maximum[channel]
    return said | {
        "numbers": [
            [name, value, cells.get(name)] for name, value in numbers(grid, channel, values).items()
        ],
        "histogram": _histogram(values),
        "dead": say("constant here: every cell has the same value") if dead else "",
        "deadHint": say(WORDS["constant channel"]) if dead else "",
        "noFinite": "",
    }


def _pinned(shown: RenderedGrid) -> RenderedPair:
    if shown.compared is None:
        raise NotThereError(
            shown.warning
            or say("Nothing is pinned as A: pin what is on the screen with Compare first.")
        )
    return shown.compared


def _of_a(compared: RenderedPair, facts: Mapping[str, Any]) -> dict[str, Any]:
    pinned, maps = compared.maps.pinned, compared.maps.a
    channel = asked_number(facts, "channel", len(maps), pinned.step)
    return {
        "title": say("Channel {channel} of A", channel=channel),
        "caption": f"{pinned.image} · {pinned.title}",
        **described(compared.pair.a, maps, channel),
    }


def _histogram(values: NDArray[np.float32]) -> dict[str, Any]:
    """Describe how many finite cells have which value, as bars from the lowest to the highest."""
    bins = histogram(values)
    heights = np.where(bins.counts, _WHOLE * bins.counts / bins.counts.max(), 0.0)
    heights = np.where(bins.counts, heights.clip(_NO_CELL), 0.0)
    low, high = number(bins.edges[0]), number(bins.edges[-1])
    return {
        "bars": [
            [float(f"{height:.1f}"), "below" if middle < 0 else "above"]
            for height, middle in zip(heights.tolist(), bins.middles.tolist(), strict=True)
        ],
        "low": low,
        "high": high,
        "says": say(
            "Histogram of {size:,} cells from {low} to {high}",
            size=int(bins.counts.sum()),
            low=low,
            high=high,
        ),
    }


class _Kind(NamedTuple):
    """Kind of file: the ending of its name, and its media type."""

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
        HookVizError: as `render`.
    """
    asked = one_of("kind", facts.get("kind"), _KINDS)
    kind = _KINDS[asked]
    if asked.startswith("map-"):
        return _map(subject, kind)
    shown = render(subject, view)
    maps, title = shown.maps.numpy(), shown.grid.title
    channel = asked_number(facts, "channel", len(maps), shown.resolved.step)
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

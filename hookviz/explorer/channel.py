"""Answer with one channel: its map with exact values, its numbers, its histogram, A beside B.

`answer_file` has the same as a file, for print or as numbers, and the network's map as one.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.channel_page import channel_csv, channel_page, numbers
from hookviz.drawing.grid import Grid
from hookviz.drawing.statistics import histogram, strongest_cells
from hookviz.errors import one_of
from hookviz.explaining.network_map.mapped_network import draw_network
from hookviz.explorer.encoding import channel_map
from hookviz.explorer.glossary import WORDS
from hookviz.explorer.question import Answer, NotThereError, Report, asked_number
from hookviz.explorer.rendering import pair_facts, render
from hookviz.explorer.subject import Subject, between_layers
from hookviz.explorer.view import View
from hookviz.language.saying import say
from hookviz.wording import number

_LEAST_BAR, _HIGHEST_BAR = 1.0, 100.0  # heights in percent; a lower bar could not be seen
_MEDIA_TYPES = {
    "png": "image/png",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "svg": "image/svg+xml",
}
_FILES = ("channel-png", "channel-pdf", "channel-csv", "map-png", "map-svg")


def answer_channel(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer with a channel of the layer; with `of` ``"a"``, with a channel of the pinned A.

    For a pair of one shape the answer compares both, too.

    Raises:
        NotThereError: the channel does not exist, or nothing is pinned.
        SettingError: `of` is neither ``"a"`` nor ``"b"``.
        HookVizError: as `render`.
    """
    rendered = render(subject, view)
    compared = rendered.compared
    colours = {"colours": subject.colours.diverging}  # of the histogram's bars
    if one_of("of", facts.get("of", "b"), ("a", "b")) == "a":
        if compared is None:
            raise NotThereError(
                rendered.warning
                or say("Nothing is pinned as A: pin what is on the screen with Compare first.")
            )
        pinned, maps = compared.maps.pinned, compared.maps.a
        channel = asked_number(facts, "channel", len(maps), pinned.step)
        titles = {
            "title": say("Channel {channel} of A", channel=channel),
            "caption": f"{pinned.image} · {pinned.title}",
        }
        return Answer(channel_facts(compared.pair.a, maps, channel) | titles | colours)
    maps = rendered.maps.numpy()
    channel = asked_number(facts, "channel", len(maps), rendered.resolved.step)
    answer = channel_facts(rendered.grid, maps, channel) | colours
    if compared is not None and compared.pair.alike:
        of_a = channel_map(compared.pair.a, channel, compared.maps.a[channel])
        answer["pair"] = pair_facts(compared.maps, compared.pair, channel) | {"a": of_a}
    return Answer(answer)


def channel_facts(
    grid: Grid, maps: NDArray[np.float32], channel: int, *, is_painted: bool = True
) -> dict[str, Any]:
    """Describe a channel of `maps`, ``(C, H, W)``, which the grid draws: its map and its numbers.

    Minimum and maximum have the cell where they are. The bars of the histogram are percent of the
    highest one, and below or above zero. `is_painted` is as of `channel_map`.
    """
    values = maps[channel]
    facts = {
        "title": say("Channel {channel}", channel=channel),
        "channel": channel,
        **channel_map(grid, channel, values, is_painted=is_painted),
    }
    if not np.isfinite(values).any():
        none = say("No cell of this map is a finite number.")
        facts |= {"numbers": [], "histogram": None, "dead": "", "deadHint": ""}
        return facts | {"noFinite": none}
    extremes = strongest_cells(np.stack([-values, values])).tolist()
    positions = [divmod(index, values.shape[1]) for index in extremes]
    cells = dict(zip((say("minimum"), say("maximum")), positions, strict=True))
    stats = grid.stats
    is_dead = values.size > 1 and stats.minimum[channel] == stats.maximum[channel]
    return facts | {
        "numbers": [
            [name, value, cells.get(name)] for name, value in numbers(grid, channel, values).items()
        ],
        "histogram": _histogram(values),
        "dead": say("constant here: every cell has the same value") if is_dead else "",
        "deadHint": say(WORDS["constant channel"]) if is_dead else "",
        "noFinite": "",
    }


def _histogram(values: NDArray[np.float32]) -> dict[str, Any]:
    """Describe the histogram of the finite cells, as bars from the lowest value to the highest."""
    bins = histogram(values)
    heights = np.where(bins.counts, _HIGHEST_BAR * bins.counts / bins.counts.max(), 0.0)
    heights = np.where(bins.counts, heights.clip(_LEAST_BAR), 0.0)
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


def answer_file(subject: Subject, view: View, facts: Mapping[str, Any], _report: Report) -> Answer:
    """Answer with a channel or the whole network's map as a file: its name and type, and its bytes.

    Raises:
        NotThereError: the channel does not exist.
        SettingError: the kind of file does not exist.
        HookVizError: as `render`.
    """
    kind, _, ending = one_of("kind", facts.get("kind"), _FILES).partition("-")
    model = subject.model
    if kind == "map":
        name = f"{model.name}-map"
        with subject.take_turn(model.title, "file", "") as run:
            progress = between_layers(run, model)
            data = draw_network(model, subject.model_input, progress=progress).figure_bytes(ending)
    else:
        rendered = render(subject, view)
        maps, title = rendered.maps.numpy(), rendered.grid.title
        channel = asked_number(facts, "channel", len(maps), rendered.resolved.step)
        name = f"{model.name}-{title}-channel-{channel}"
        if ending == "csv":
            data = channel_csv(maps[channel]).encode()
        else:
            words = say(
                "{model} · {grid} · channel {channel}",
                model=model.name,
                grid=title,
                channel=channel,
            )
            with subject.take_turn(say("Drawing the channels"), "file", ""):  # it takes a while
                data = channel_page(
                    rendered.grid,
                    channel,
                    maps[channel],
                    image=subject.image.pixels,
                    crop=subject.model_input.crop,
                    title=words,
                    format=ending,
                )
    return Answer({"name": f"{name}.{ending}", "mime": _MEDIA_TYPES[ending]}, data)
